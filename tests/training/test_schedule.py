"""Learning rates, against the formulas of the paper and against torch's own schedulers."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from prpn.config import TrainingConfig
from prpn.training.schedule import Plateau, learning_rate

BASE = 0.004


def config(**values: object) -> TrainingConfig:
    return TrainingConfig(epochs=1, learning_rate=BASE, **values)  # type: ignore[arg-type]


def rates(settings: TrainingConfig, total: int, plateau: Plateau | None = None) -> list[float]:
    return [learning_rate(settings, step, total, plateau or Plateau()) for step in range(total)]


def plateau_after(losses: list[float], settings: TrainingConfig) -> Plateau:
    plateau = Plateau()
    for loss in losses:
        plateau = plateau.after_epoch(loss, settings)
    return plateau


def test_constant_stays() -> None:
    assert rates(config(schedule="constant"), 5) == [BASE] * 5


def test_constant_ignores_a_plateau() -> None:
    assert rates(config(schedule="constant"), 2, Plateau(scale=0.25)) == [BASE, BASE]


@pytest.mark.parametrize("schedule", ["constant", "plateau", "cosine"])
def test_warm_up_rises_in_equal_steps_to_the_full_rate(schedule: str) -> None:
    found = rates(config(schedule=schedule, warmup_steps=4), 100)
    assert found[:4] == pytest.approx([BASE / 4, BASE / 2, BASE * 3 / 4, BASE])
    assert found[4] == pytest.approx(BASE, rel=1e-3)


@given(st.integers(1, 200), st.floats(0, 1))
def test_one_cycle_is_a_cosine_after_a_long_rise(total: int, floor: float) -> None:
    expected = rates(config(schedule="cosine", warmup_steps=round(0.3 * total), cosine_floor=floor), total)
    assert rates(config(schedule="one-cycle", cosine_floor=floor), total) == expected


@given(st.integers(0, 20), st.integers(1, 100), st.floats(0, 1))
def test_cosine(warmup: int, after_warmup: int, floor: float) -> None:
    total = warmup + after_warmup
    found = rates(config(schedule="cosine", warmup_steps=warmup, cosine_floor=floor), total)
    expected = [
        BASE * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * (step - warmup) / after_warmup)))
        for step in range(warmup, total)
    ]
    assert found[warmup:] == pytest.approx(expected)
    assert found[warmup] == pytest.approx(BASE)
    assert all(earlier >= later for earlier, later in zip(found[warmup:], found[warmup + 1 :], strict=False))
    assert all(BASE * floor * (1 - 1e-12) <= rate for rate in found[warmup:])


def test_cosine_agrees_with_torch() -> None:
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=BASE)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=30, eta_min=0.1 * BASE)
    expected = []
    for _ in range(30):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert rates(config(schedule="cosine", cosine_floor=0.1), 30) == pytest.approx(expected)


def test_cosine_past_its_end_stays_at_the_floor() -> None:
    settings = config(schedule="cosine", cosine_floor=0.2)
    assert learning_rate(settings, 50, 10, Plateau()) == pytest.approx(0.2 * BASE)


def test_warm_up_longer_than_the_run() -> None:
    assert rates(config(schedule="cosine", warmup_steps=10), 3) == pytest.approx([BASE / 10, BASE / 5, BASE * 3 / 10])


def test_plateau_counts_bad_epochs() -> None:
    settings = config(plateau_patience=2, plateau_factor=0.5)
    plateau = plateau_after([3.0, 2.0], settings)
    assert plateau == Plateau(best=2.0)
    plateau = plateau.after_epoch(2.0, settings)  # no better is bad
    assert plateau == Plateau(best=2.0, bad_epochs=1)
    plateau = plateau.after_epoch(2.5, settings)
    assert plateau == Plateau(best=2.0, bad_epochs=2)  # two are tolerated
    plateau = plateau.after_epoch(2.1, settings)
    assert plateau == Plateau(best=2.0, bad_epochs=0, scale=0.5)  # the third lowers the rate and starts the count again
    plateau = plateau.after_epoch(1.9, settings)
    assert plateau == Plateau(best=1.9, bad_epochs=0, scale=0.5)  # what was lowered stays low


def test_one_good_epoch_forgives_the_bad_ones() -> None:
    settings = config(plateau_patience=1)
    assert plateau_after([5, 6, 4, 5, 3, 4], settings) == Plateau(best=3, bad_epochs=1)


def test_without_patience_every_bad_epoch_lowers_the_rate() -> None:
    settings = config(plateau_patience=0, plateau_factor=0.5)
    plateau = plateau_after([1, 2, 3, 4], settings)
    assert plateau.scale == 0.125
    assert rates(settings, 2, plateau) == [BASE / 8, BASE / 8]


def test_a_loss_that_is_not_a_number_is_a_bad_epoch() -> None:
    assert plateau_after([1.0, math.nan], config()) == Plateau(best=1.0, bad_epochs=1)


@given(st.lists(st.integers(0, 6), max_size=30), st.integers(0, 4), st.sampled_from([0.1, 0.5, 0.75]))
def test_plateau_agrees_with_torch(losses: list[int], patience: int, factor: float) -> None:
    settings = config(plateau_patience=patience, plateau_factor=factor)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=BASE)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=factor, patience=patience, threshold=0, eps=0
    )
    plateau = Plateau()
    for loss in losses:
        scheduler.step(float(loss))
        plateau = plateau.after_epoch(float(loss), settings)
        assert learning_rate(settings, 0, 1, plateau) == pytest.approx(optimizer.param_groups[0]["lr"])
        assert plateau.bad_epochs == scheduler.num_bad_epochs
