"""A run is the same run on every path: it can be stopped on one and go on on another."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from prpn.training.checkpoint import read_tensors
from tests.kernels.native import needs_native_core

from .tiny import metrics, run, write_text

NO_DROPOUT = [f"model.dropout_{site}=0.0" for site in ("in_out", "between", "recurrent", "attention")]


@needs_native_core
@pytest.mark.parametrize("path", [("fp32", "off"), ("off", "fp32"), ("autograd", "fp32"), ("fp32", "autograd")])
def test_a_run_goes_on_on_another_path(path: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = write_text(tmp_path / "text.txt")
    monkeypatch.setenv("PRPN_KERNELS", "off")
    whole = run(tmp_path / "whole", text, "training.steps=6", "training.evaluate_every=2", *NO_DROPOUT)
    for kernels, steps in zip(path, (4, 6), strict=True):
        monkeypatch.setenv("PRPN_KERNELS", kernels)
        steps_set = (f"training.steps={steps}", "training.evaluate_every=2")
        parts = run(tmp_path / "run", text, *steps_set, *NO_DROPOUT, resume=steps == 6)
    assert parts["steps"] == whole["steps"] == 6
    losses = [[line["validation_loss_estimate"] for line in metrics(tmp_path / name)] for name in ("whole", "run")]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)


@needs_native_core
def test_a_run_with_dropout_repeats_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRPN_KERNELS", "fp32")
    text, rates = write_text(tmp_path / "text.txt"), [rate.replace("=0.0", "=0.2") for rate in NO_DROPOUT]
    for name in ("one", "other"):
        run(tmp_path / name, text, "training.steps=5", *rates)
    one, other = (read_tensors(tmp_path / name / "training" / "checkpoint.safetensors")[0] for name in ("one", "other"))
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())
