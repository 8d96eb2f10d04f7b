"""Files of tensors: what goes in comes out, never half a file, and what cannot be used is an error of one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from prpn.errors import InputError
from prpn.model import PRPN
from prpn.training.checkpoint import (
    load_optimizer,
    load_weights,
    optimizer_tensors,
    read_tensors,
    weights_of,
    write_tensors,
)

from .tiny import recipe

TENSORS = {
    "a": torch.tensor([[1.5, -0.0], [float("inf"), float("nan")]]),
    "b": torch.arange(6).reshape(2, 3).T,
    "c": torch.zeros(0, 3),
    "d": torch.tensor(7),
    "e": torch.tensor([True, False]),
}


def test_there_and_back(tmp_path: Path) -> None:
    header = {"position": {"best": float("inf"), "step": 3}, "text": "é"}
    write_tensors(tmp_path / "new" / "x.safetensors", TENSORS, header)
    tensors, found = read_tensors(tmp_path / "new" / "x.safetensors")
    assert found == header
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        torch.testing.assert_close(tensors[name], tensor, rtol=0, atol=0, equal_nan=True)
        assert tensors[name].dtype == tensor.dtype


def test_without_a_header(tmp_path: Path) -> None:
    write_tensors(tmp_path / "x.safetensors", TENSORS)
    assert read_tensors(tmp_path / "x.safetensors")[1] == {}


def test_the_same_tensors_are_the_same_bytes(tmp_path: Path) -> None:
    write_tensors(tmp_path / "one", TENSORS, {"k": 1})
    write_tensors(tmp_path / "two", dict(reversed(TENSORS.items())), {"k": 1})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.safetensors"
    write_tensors(path, {"a": torch.ones(2)})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for function in ("os.fsync", "pathlib.Path.replace"):
        with monkeypatch.context() as patch:
            patch.setattr(function, full)
            with pytest.raises(OSError, match="No space left"):
                write_tensors(path, {"a": torch.zeros(2)})
        assert [file.name for file in tmp_path.iterdir()] == ["x.safetensors"]
        assert torch.equal(read_tensors(path)[0]["a"], torch.ones(2))


def test_others_may_read_a_model(tmp_path: Path) -> None:
    write_tensors(tmp_path / "x.safetensors", TENSORS)
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "x.safetensors").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("content", [b"", b"\x80\x04not a pickle", b"a" * 100])
def test_what_is_no_safetensors_file(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=r"^[^\n]*x\.safetensors: not a readable safetensors file[^\n]*$"):
        read_tensors(tmp_path / "x.safetensors")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x\.safetensors: no such file; is this a model folder\?"):
        read_tensors(tmp_path / "x.safetensors")


@pytest.mark.parametrize("tied", ["true", "false"])
def test_weights_into_a_new_network(tied: str) -> None:
    model = recipe(f"model.tied={tied}").model
    one, other = PRPN(model, 9), PRPN(model, 9)
    load_weights(other, weights_of(one), "here")
    assert all(torch.equal(tensor, other.state_dict()[name]) for name, tensor in one.state_dict().items())
    assert (other.decoder.weight is other.embedding.weight) == (tied == "true")


@pytest.mark.parametrize("change", ["model.hidden=10", "model.layers=2", "model.tied=false"])
def test_weights_of_another_network(change: str) -> None:
    weights = weights_of(PRPN(recipe().model, 9))
    with pytest.raises(
        InputError,
        match=r"^here: weights do not fit the configuration \([^\n]*\); take config\.json, vocabulary\.json",
    ):
        load_weights(PRPN(recipe(change).model, 9), weights, "here")


def test_weights_of_another_vocabulary() -> None:
    with pytest.raises(InputError, match=r"^here: weights do not fit"):
        load_weights(PRPN(recipe().model, 8), weights_of(PRPN(recipe().model, 9)), "here")


@pytest.mark.parametrize("weights", [{}, {"network.embedding.weight": torch.zeros(9, 8)}])
def test_tensors_that_are_no_weights(weights: dict[str, torch.Tensor]) -> None:
    with pytest.raises(InputError, match=r"^here: weights do not fit"):
        load_weights(PRPN(recipe().model, 9), weights, "here")


def test_the_optimiser_goes_on_where_it_was() -> None:
    def parameters() -> list[torch.nn.Parameter]:
        return [torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(2, 2))]

    def step(optimizer: torch.optim.Optimizer, weights: list[torch.nn.Parameter], number: int) -> None:
        for weight in weights:
            weight.grad = torch.full_like(weight, 0.1 * number)
        optimizer.step()

    weights = parameters()
    optimizer = torch.optim.Adam(weights, lr=0.1, betas=(0.0, 0.999))
    for number in range(1, 4):
        step(optimizer, weights, number)
    copies = [torch.nn.Parameter(weight.detach().clone()) for weight in weights]
    other = torch.optim.Adam(copies, lr=0.1, betas=(0.0, 0.999))
    load_optimizer(other, {name: tensor.clone() for name, tensor in optimizer_tensors(optimizer).items()})
    step(optimizer, weights, 4)
    step(other, copies, 4)
    assert all(torch.equal(one, two) for one, two in zip(weights, copies, strict=True))
