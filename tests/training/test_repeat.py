"""A run is a function of recipe, text and seed: the same again gives the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest

from .tiny import MODES, differences, outcome, run, write_text


@pytest.mark.parametrize("mode", MODES)
def test_the_same_again_bit_for_bit(mode: str, tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt")
    run(tmp_path / "one", text, *MODES[mode])
    run(tmp_path / "two", text, *MODES[mode])
    assert differences(outcome(tmp_path / "one"), outcome(tmp_path / "two")) == []


@pytest.mark.parametrize("mode", ["stream", "sentences"])
def test_another_seed_is_another_run(mode: str, tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt")
    run(tmp_path / "one", text, "training.steps=5", *MODES[mode])
    run(tmp_path / "two", text, "training.steps=5", "training.seed=2", *MODES[mode])
    changed = differences(outcome(tmp_path / "one"), outcome(tmp_path / "two"))
    assert {"best weights", "tensors", "metrics"} <= set(changed)
    assert "vocabulary" not in changed


def test_the_average_changes_what_is_kept_but_not_what_is_learned(tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt")
    run(tmp_path / "plain", text, "training.schedule=constant")
    run(tmp_path / "averaged", text, "training.schedule=constant", "training.average=0.9")
    plain, averaged = outcome(tmp_path / "plain"), outcome(tmp_path / "averaged")
    assert plain["best weights"] != averaged["best weights"]
    learned = {name: value for name, value in plain["tensors"].items() if name.startswith("network.")}
    assert learned == {name: averaged["tensors"][name] for name in learned}


def test_a_used_generator_does_not_change_a_run(tmp_path: Path) -> None:
    import torch

    text = write_text(tmp_path / "text.txt")
    run(tmp_path / "one", text, "training.steps=4")
    torch.rand(100)
    run(tmp_path / "two", text, "training.steps=4")
    assert differences(outcome(tmp_path / "one"), outcome(tmp_path / "two")) == []
