"""Half the space: fp16 weights, the same language model but for rounding, the same trees but for near ties."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from prpn.api.model import load
from prpn.distillation import distill
from prpn.embedded.pack import pack, share_of_changed_trees
from prpn.errors import InputError
from prpn.parsing.parser import Parser
from prpn.text.files import first_sentences
from prpn.training.checkpoint import read_tensors
from tests.cli.command import Command, assert_refused
from tests.training.tiny import run, write_text


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pack")
    run(folder / "model", write_text(folder / "text.txt"), "training.epochs=1")
    return folder / "model"


def test_half_the_space_and_nothing_of_the_training(model: Path, tmp_path: Path) -> None:
    size = pack(model, tmp_path / "small")
    files = {path.name for path in (tmp_path / "small").iterdir()}
    assert files == {"config.json", "vocabulary.json", "model.safetensors", "README.md"}
    assert size == sum((tmp_path / "small" / name).stat().st_size for name in files)
    before, after = (read_tensors(folder / "model.safetensors")[0] for folder in (model, tmp_path / "small"))
    assert before.keys() == after.keys()
    for name, tensor in after.items():
        assert tensor.dtype == (torch.float16 if tensor.ndim > 1 else before[name].dtype)
        torch.testing.assert_close(tensor.to(before[name].dtype), before[name], rtol=1e-3, atol=1e-6)
    text = "the old man sat on a bench ."
    first, second = (load(folder).perplexity(text) for folder in (model, tmp_path / "small"))
    assert math.isclose(first, second, rel_tol=1e-2)
    assert (tmp_path / "small" / "model.safetensors").stat().st_size < 0.8 * (
        model / "model.safetensors"
    ).stat().st_size
    with pytest.raises(InputError, match=r"is there already; .*--out"):
        pack(model, tmp_path / "small")


def test_a_distilled_parser_comes_along(model: Path, tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt")
    distill([Parser.load(model)], [str(text)], tmp_path / "crowd", language_model=model, quiet=True)
    (tmp_path / "crowd" / "ATTRIBUTION.txt").write_text("theirs")
    pack(tmp_path / "crowd", tmp_path / "small")
    assert (tmp_path / "small" / "ATTRIBUTION.txt").read_text() == "theirs"
    small = load(tmp_path / "small")
    assert small.parser.network.lookahead == 5
    words = ["the", "old", "man"]
    np.testing.assert_allclose(small.scores(words), load(tmp_path / "crowd").scores(words), rtol=0.01, atol=0.01)


def test_a_folder_without_weights(model: Path, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text((model / "config.json").read_text())
    with pytest.raises(InputError, match="has no weights"):
        pack(tmp_path / "model", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_changed_trees_are_counted(model: Path, tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt")
    text.write_text("\n" + text.read_text())
    sentences = first_sentences(str(text))
    assert sentences == text.read_text().splitlines()[1:]
    assert share_of_changed_trees(model, model, sentences) == 0
    run(tmp_path / "other", text, "training.epochs=1", "training.seed=5")
    assert share_of_changed_trees(model, tmp_path / "other", sentences) > 0.1
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(InputError, match="no sentence in it"):
        first_sentences(str(tmp_path / "empty.txt"))


def test_the_command(model: Path, tmp_path: Path, prpn: Command) -> None:
    text = write_text(tmp_path / "text.txt")
    result = prpn("pack", model, "--out", tmp_path / "one", "--text", text)
    assert (result.status, result.err) == (0, "")
    assert "changed trees" in result.out
    values = json.loads(prpn("pack", model, "--out", tmp_path / "two", "--json").out)
    assert values["bytes"] > 0
    assert values["changed_trees"] is None
    assert prpn("pack", model, "--out", tmp_path / "three", "--text", tmp_path / "none.txt").status == 1
    assert not (tmp_path / "three").exists()
    assert_refused(prpn("pack", model, "--out", text), 1, "is there already")
    assert_refused(prpn("pack", tmp_path, "--out", tmp_path / "three"), 1, "not a model folder")
