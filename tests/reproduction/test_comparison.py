"""When a figure counts as repeated."""

from __future__ import annotations

import math

import pytest

from prpn.reproduction.comparison import ROUNDING, Comparison
from prpn.reproduction.experiments import Figure

FIGURE = Figure("PRPN", "perplexity", "test", spread=0.02)


def test_seeds_that_were_run_are_compared_with_themselves() -> None:
    recorded = {"1": 100.0, "2": 110.0, "3": 120.0}
    one = Comparison(FIGURE, {"2": 111.0}, recorded)
    assert one.recorded == 110
    assert one.difference == pytest.approx(1)
    assert one.allowed == pytest.approx(2 * 0.02 * math.sqrt(2) * 110)
    assert one.within
    other = Comparison(FIGURE, {"4": 90.0, "2": 100.0}, recorded)
    assert other.recorded == 110
    assert other.now == 95
    assert other.allowed == pytest.approx(2 * 0.02 * math.sqrt(1 / 2 + 1 / 3) * 110)
    assert other.within is False


def test_what_no_seed_changes_must_be_the_same() -> None:
    figure = Figure("5-gram", "perplexity", "test")
    limit = 100 * ROUNDING
    assert Comparison(figure, {"none": 100 + 0.9 * limit}, {"none": 100.0}).within
    assert Comparison(figure, {"none": 100 - 1.1 * limit}, {"none": 100.0}).within is False


def test_what_was_not_recorded_has_no_verdict() -> None:
    values = Comparison(FIGURE, {"1": 100.0}, {}).to_json()
    assert values == {
        "value": 100.0, "by_seed": {"1": 100.0}, "recorded": None, "difference": None, "allowed": None, "within": None
    }  # fmt: skip
