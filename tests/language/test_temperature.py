"""What τ does: ranges, levels and overlaps against the definitions; hard gates against the reaches of trees."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from prpn.config import ModelConfig
from prpn.language import temperature
from prpn.language.temperature import levels, overlapping_pairs, range_starts, sentence_lengths, structure
from prpn.model.parsing import gate_factors
from prpn.trees.reach import reach_starts_from_distances
from tests.language.models import SENTENCE, model_of
from tests.reference import temperature as reference

distances = st.lists(st.integers(-8, 8).map(lambda n: n / 8), min_size=1, max_size=12).map(np.array)


def gates_of(tau: float, flavour: str = "released", kind: str = "hard") -> ModelConfig:
    return ModelConfig(flavour=flavour, gates=kind, temperature=tau)


@given(
    distances,
    st.sampled_from(["paper", "released"]),
    st.sampled_from(["hard", "soft"]),
    st.sampled_from([0.2, 1.3, 10.0, math.inf]),
)
def test_against_the_definitions(found: np.ndarray, flavour: str, kind: str, tau: float) -> None:
    config = gates_of(tau, flavour, kind)
    starts = range_starts(found, config)
    assert starts == reference.range_starts(
        found.tolist(), lambda d: gate_factors(torch.tensor(d).double(), config).item()
    )
    assert levels(starts) == reference.levels(starts)
    assert overlapping_pairs(starts) == reference.overlapping_pairs(starts)


@given(st.lists(st.integers(0, 20), max_size=12))
def test_levels_and_overlaps_of_any_ranges(drawn: list[int]) -> None:
    starts = [0, *(value % t for t, value in enumerate(drawn, start=1))]
    assert levels(starts) == reference.levels(starts)
    assert overlapping_pairs(starts) == reference.overlapping_pairs(starts)


@given(distances)
def test_hard_gates_have_the_reaches_of_a_tree(found: np.ndarray) -> None:
    starts = range_starts(found, gates_of(math.inf))
    assert starts == reach_starts_from_distances(found)
    assert overlapping_pairs(starts) == 0


@given(distances, st.floats(0.01, 50), st.floats(1, 50))
def test_sharper_released_gates_never_reach_further(found: np.ndarray, tau: float, factor: float) -> None:
    soft, sharp = (range_starts(found, gates_of(each)) for each in (tau, tau * factor))
    assert all(before <= after for before, after in zip(soft, sharp, strict=True))


def test_known_sentences() -> None:
    falling, rising = np.arange(5, 0, -1.0), np.arange(5.0)
    assert levels(range_starts(falling, gates_of(math.inf))) == 4  # (a (b (c (d e))))
    assert levels(range_starts(rising, gates_of(math.inf))) == 1  # every gate is open: flat
    assert levels(range_starts(np.array([9.0, 1, 5, 1]), gates_of(math.inf))) == 2  # (a b (c d))
    assert levels(range_starts(falling, gates_of(1e-6))) == 1
    found = structure([falling, rising, np.array([1.0])], gates_of(math.inf))
    assert (found.levels, found.overlapping) == (2.5, 0.0)
    assert found.reach == pytest.approx((4 * 1 + 1 + 2 + 3 + 4) / 8)


def test_lengths_of_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temperature, "LONGEST", 3)
    assert sentence_lengths(np.array([5, 6, 1, 1, 7, 1, 8, 9, 5, 6], dtype=np.int32), 1) == [2, 1, 3, 1]
    assert sentence_lengths(np.array([1], dtype=np.int32), 1) == []
    assert sentence_lengths(np.array([], dtype=np.int32), 1) == []


@pytest.mark.parametrize("tau", [0.3, math.inf])
def test_a_model_at_another_temperature_is_one_trained_so(tau: float) -> None:
    model = model_of()
    before = model.perplexity(SENTENCE)
    changed, made = model.at_temperature(tau), model_of(f"model.temperature={tau}")
    assert changed.perplexity(SENTENCE) == pytest.approx(made.perplexity(SENTENCE), rel=1e-12)
    assert changed.perplexity(SENTENCE) != pytest.approx(before, rel=1e-6)
    assert model.perplexity(SENTENCE) == before
    assert changed.recipe.model == dataclasses.replace(model.recipe.model, temperature=tau)
