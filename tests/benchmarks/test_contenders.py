"""Every contender learns the same thing: the comparison is one of speed alone."""

from __future__ import annotations

import math
import os

import pytest

from benchmarks.contenders import (
    CONTENDERS,
    STEP_BY_STEP,
    UNTUNED,
    Package,
    available_contenders,
    kernels_set,
    training_steps,
)
from benchmarks.sizes import SIZES


def losses(name: str) -> list[float]:
    step = training_steps(SIZES["tiny"], [name])[name]
    return [step() for _ in range(4)]


@pytest.mark.parametrize("name", [name for name, contender in CONTENDERS.items() if contender.learner is Package])
def test_the_package_follows_the_step_by_step_formulation(name: str) -> None:
    if not CONTENDERS[name].available:
        pytest.skip("no native core here")
    tolerance = 1e-4 if CONTENDERS[name].precision == "fp32" else 0.02
    assert losses(name) == pytest.approx(losses(STEP_BY_STEP), rel=tolerance)


def test_the_untuned_formulation_takes_the_same_steps_in_a_process_of_its_own() -> None:
    assert losses(UNTUNED) == pytest.approx(losses(STEP_BY_STEP), rel=1e-5)


@pytest.mark.parametrize("name", ["nn.LSTM fp32", "nn.LSTM bf16"])
def test_lstms_learn(name: str) -> None:
    found = losses(name)
    assert all(math.isfinite(loss) for loss in found)
    assert found[-1] < found[0]


def test_contenders_that_need_no_native_core_are_always_there() -> None:
    assert {STEP_BY_STEP, "nn.LSTM fp32", "prpn autograd", "prpn PyTorch"} <= set(available_contenders())


def test_kernels_are_set_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRPN_KERNELS", "off")
    with kernels_set("autograd"):
        assert os.environ["PRPN_KERNELS"] == "autograd"
    assert os.environ["PRPN_KERNELS"] == "off"
    monkeypatch.delenv("PRPN_KERNELS")
    with kernels_set("autograd"):
        pass
    assert "PRPN_KERNELS" not in os.environ
