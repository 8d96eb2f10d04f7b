"""The unigram cache against its slow twin, and the tuning of it against a search by small steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prpn.baselines.unigram_cache import UnigramCache, cache_log_probabilities, tune_cache
from prpn.errors import ConfigError
from tests.reference import unigram_cache as reference

VOCABULARY = 5

texts = st.lists(st.integers(0, VOCABULARY - 1), max_size=40)
sizes = st.sampled_from([1, 2, 3, 7, 40, 1000])


def base(count: int, seed: int = 0) -> np.ndarray:
    return np.log(np.random.default_rng(seed).uniform(0.01, 0.9, count))


@given(texts, sizes, st.booleans())
@example([], 3, True)
@example([], 3, False)
@example([4], 3, True)
@example([1] * 40, 7, True)
def test_the_cache_as_defined(text: list[int], size: int, decaying: bool) -> None:
    found = np.exp(cache_log_probabilities(np.array(text, np.int32), size, decaying))
    expected = [reference.cache_probability(text, t, text[t], size, decaying) for t in range(1, len(text))]
    assert found[1:] == pytest.approx(expected, rel=1e-12, abs=0)
    assert found.shape == (len(text),)


@given(texts, sizes, st.floats(0, 0.99), st.booleans())
def test_the_mixture_as_defined(text: list[int], size: int, weight: float, decaying: bool) -> None:
    model = base(len(text))
    found = UnigramCache(size, weight, decaying).mixed(model, np.array(text, np.int32))
    assert np.exp(found) == pytest.approx(reference.mixed(np.exp(model).tolist(), text, size, weight, decaying))


@given(texts, sizes, st.booleans())
def test_every_history_has_a_distribution(text: list[int], size: int, decaying: bool) -> None:
    model = np.full(len(text) + 1, -math.log(VOCABULARY))
    ends = [np.array([*text, token]) for token in range(VOCABULARY)]
    after = [UnigramCache(size, 0.3, decaying).mixed(model, tokens)[-1] for tokens in ends]
    assert np.exp(after).sum() == pytest.approx(1)


@given(texts, texts, sizes, st.booleans())
def test_a_token_says_nothing_about_those_before_it(
    text: list[int], other: list[int], size: int, decaying: bool
) -> None:
    cache, model = UnigramCache(size, 0.3, decaying), base(len(text) + len(other))
    short = cache.mixed(model[: len(text)], np.array(text, np.int32))
    assert cache.mixed(model, np.array(text + other, np.int32))[: len(text)] == pytest.approx(short, rel=1e-12)


def test_a_long_text_neither_overflows_nor_fades_away() -> None:
    tokens = np.tile(np.arange(4), 50_000)
    for decaying in (False, True):
        assert np.exp(cache_log_probabilities(tokens, 40, decaying)[-1]) == pytest.approx(1 / 4, rel=0.1)


@given(st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=40), st.booleans())
def test_no_other_weight_is_better(text: list[int], decaying: bool) -> None:
    tokens, model = np.array(text, np.int32), base(len(text), seed=1)
    tuned = tune_cache(model, tokens, sizes=(3, 20), decaying=(decaying,))
    best = tuned.mixed(model, tokens).sum()
    assert tuned.decaying == decaying
    for size in (3, 20):
        for weight in np.arange(0, 1, 0.05):
            assert UnigramCache(size, float(weight), decaying).mixed(model, tokens).sum() <= best + 1e-9


def test_tuning_finds_the_size_and_whether_it_helps() -> None:
    random = np.random.default_rng(3)
    topics = np.concatenate([random.integers(topic, topic + 20, 400) for topic in range(0, 1000, 20)])
    uniform = np.full(len(topics), -math.log(1000))
    tuned = tune_cache(uniform, topics, sizes=(2, 50, 5000))
    assert tuned.size == 50
    assert tuned.weight > 0.5
    known = np.zeros(len(topics))  # nothing is left to guess
    assert tune_cache(known, topics).mixed(known, topics) == pytest.approx(known)


@pytest.mark.parametrize(("size", "weight"), [(0, 0.1), (10, 1.0), (10, -0.1)])
def test_what_cannot_be(size: int, weight: float) -> None:
    with pytest.raises(ConfigError, match="a cache of"):
        UnigramCache(size, weight, decaying=False)
