"""`released` computes what the released code computes: the golden vectors, in one piece and chunk by chunk."""

import pytest
import torch
from torch import Tensor

from prpn.model import PRPN, Output, State
from tests.reference import golden
from tests.reference.golden import Golden


@pytest.fixture(params=golden.NAMES)
def case(request: pytest.FixtureRequest) -> Golden:
    return golden.load(request.param)


@pytest.fixture(params=["off", "autograd"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PRPN_KERNELS", request.param)
    return str(request.param)


def model_of(case: Golden) -> PRPN:
    model = PRPN(case.config, len(case.weights["decoder.bias"])).double()
    missing, unexpected = model.load_state_dict(case.weights, strict=False)
    assert not unexpected
    assert all(name.endswith(("num_batches_tracked", "distance_scale")) for name in missing)
    return model


def numbers_of(output: Output, logits: Tensor) -> dict[str, Tensor]:
    """What a chunk computed, by its golden name."""
    return {
        "logits": logits,
        "distances": output.parse.distances.T,
        "reading_gates": output.parse.reading_gates,
        "predict_gates": output.parse.predict_gates,
        "predict_attention": output.predict_attention,
        **{f"reading_attention.{j}": a for j, a in enumerate(output.reading_attention)},
    }


def assert_close(mine: Tensor, theirs: Tensor, tolerance: float, name: str) -> None:
    torch.testing.assert_close(mine, theirs, rtol=tolerance, atol=tolerance, msg=lambda m: f"{name}: {m}")


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_chunk_by_chunk(case: Golden, mode: str, kernels: str) -> None:
    model = model_of(case).train(mode == "train")
    state, total = None, torch.zeros(())
    for k in range(golden.CHUNKS):
        inputs, targets = case.chunk(k)
        output = model(inputs, state)
        loss = model.loss(output, targets)
        expected = case.under(f"{mode}/{k}")
        assert_close(loss, expected.pop("loss"), 1e-9, "loss")
        computed = numbers_of(output, model.logits(output))
        assert computed.keys() == expected.keys()
        for name, numbers in expected.items():
            assert_close(computed[name], numbers, 1e-9, name)
        state, total = output.state.detach(), total + loss
    total.backward()
    gradients = {name: p.grad for name, p in model.named_parameters()}
    expected = case.under(f"{mode}/gradients")
    assert gradients.keys() == expected.keys()
    for name, numbers in expected.items():
        assert_close(gradients[name], numbers, 1e-8, f"gradient of {name}")
    for name, numbers in case.under(f"{mode}/after").items():
        assert_close(model.get_buffer(name), numbers, 1e-9, f"statistics {name}")


@pytest.mark.parametrize("length", [1, 2, 7, golden.CHUNK * golden.CHUNKS])
def test_evaluation_in_pieces_of_any_length(case: Golden, length: int, kernels: str) -> None:
    model = model_of(case).eval()
    pieces: list[dict[str, Tensor]] = []
    state: State | None = None
    for inputs in case.tokens[:-1].split(length):
        output = model(inputs, state)
        state = output.state
        pieces.append(numbers_of(output, model.logits(output)))
    for name in pieces[0]:
        time = 1 if name == "distances" else 0
        whole = torch.cat([case.numbers[f"eval/{k}/{name}"] for k in range(golden.CHUNKS)], time)
        assert_close(torch.cat([piece[name] for piece in pieces], time), whole, 1e-9, name)
