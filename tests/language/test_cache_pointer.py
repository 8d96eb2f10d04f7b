"""The continuous cache against its slow twin, however the text is cut, and its tuning against a search by steps."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from prpn.baselines.unigram_cache import UnigramCache
from prpn.errors import ConfigError
from prpn.language.cache_pointer import CachePointer, tune, with_cache
from prpn.training.evaluate import Reading
from tests.reference import cache_pointer as reference

VOCABULARY = 5
EMBEDDING = 3

texts = st.lists(st.integers(0, VOCABULARY - 1), max_size=40)
sizes = st.sampled_from([1, 2, 3, 7, 40, 1000])
thetas = st.sampled_from([0.0, 0.1, 1.0, 5.0])
blocks = st.integers(1, 50)
weights = st.floats(0, 0.99)


def features_of(count: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(count, EMBEDDING)))


def losses_of(count: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(-np.log(np.random.default_rng(seed).uniform(0.01, 0.9, count)))


def readings(tokens: list[int], block: int, features: torch.Tensor | None = None) -> Iterable[Reading]:
    """A text of tokens as it is read in blocks."""
    count = len(tokens)
    features = features_of(count) if features is None else features
    whole = Reading(features, torch.tensor(tokens, dtype=torch.long), losses_of(count))
    for cut in (slice(begin, begin + block) for begin in range(0, count, block)):
        yield Reading(whole.features[cut], whole.tokens[cut], whole.losses[cut])


def probabilities(cache: CachePointer, blocks: Iterable[Reading]) -> np.ndarray:
    return np.exp(np.concatenate([np.empty(0), *(together for _, together in cache.mixed(blocks))]))


@given(texts, sizes, thetas, weights, blocks)
@example([3], 1, 0.0, 0.5, 1)
@example([1] * 40, 7, 0.0, 0.9, 3)
def test_the_cache_as_defined(text: list[int], size: int, theta: float, weight: float, block: int) -> None:
    found = probabilities(CachePointer(size, theta, weight), readings(text, block))
    model = torch.exp(-losses_of(len(text))).tolist()
    expected = reference.mixed(model, features_of(len(text)).tolist(), text, size, theta, weight)
    assert found == pytest.approx(expected, rel=1e-9)


@given(texts, sizes, thetas, blocks, blocks)
def test_the_cut_changes_nothing(text: list[int], size: int, theta: float, one: int, other: int) -> None:
    cache = CachePointer(size, theta, 0.3)
    assert probabilities(cache, readings(text, one)) == pytest.approx(probabilities(cache, readings(text, other)))


@given(texts, sizes, thetas, weights, blocks)
def test_every_history_has_a_distribution(text: list[int], size: int, theta: float, weight: float, block: int) -> None:
    def last(token: int) -> float:
        uniform = (
            Reading(each.features, each.tokens, torch.full_like(each.losses, math.log(VOCABULARY)))
            for each in readings([*text, token], block)
        )
        return float(probabilities(CachePointer(size, theta, weight), uniform)[-1])

    assert sum(last(token) for token in range(VOCABULARY)) == pytest.approx(1)


@given(texts, texts, sizes, thetas, blocks)
def test_what_comes_later_changes_nothing(
    text: list[int], other: list[int], size: int, theta: float, block: int
) -> None:
    cache = CachePointer(size, theta, 0.3)
    longer = probabilities(cache, readings([*text, *other], block))
    assert longer[: len(text)] == pytest.approx(probabilities(cache, readings(text, block)), rel=1e-12)


@given(texts, sizes, blocks)
def test_without_likeness_it_is_the_unigram_cache(text: list[int], size: int, block: int) -> None:
    found = probabilities(CachePointer(size, 0.0, 0.3), readings(text, block))
    model = -losses_of(len(text)).numpy()
    plain = UnigramCache(size, 0.3, decaying=False).mixed(model, np.array(text, np.int64))
    assert found == pytest.approx(np.exp(plain))


@given(texts, sizes, thetas)
def test_without_weight_it_is_the_model(text: list[int], size: int, theta: float) -> None:
    for alone, together in CachePointer(size, theta, 0.0).mixed(readings(text, 7)):
        assert (alone == together).all()


@given(texts, thetas, blocks)
def test_all_sizes_at_once(text: list[int], theta: float, block: int) -> None:
    chosen = [1, 3, 4, 20, 100]
    together = list(with_cache(readings(text, block), chosen, [0.5, theta]))
    for place, size in enumerate(chosen):
        alone = list(with_cache(readings(text, block), [size], [theta]))
        for (_, some), (_, one) in zip(together, alone, strict=True):
            assert some[1, place] == pytest.approx(one[0, 0])


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_features_of_any_scale(scale: float) -> None:
    """Sums of exponentials that no float holds."""
    features = features_of(60) * scale
    for _, cached in with_cache(readings([1, 2, 3] * 20, 11, features), [5, 30], [0.0, 1.0, 50.0]):
        assert not np.isnan(cached).any()
        assert (cached <= 1e-12).all()


@given(st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=40))
def test_no_other_weight_is_better(text: list[int]) -> None:
    tuned = tune(readings(text, 9), sizes=(3, 20), thetas=(0.0, 1.0))
    model = -losses_of(len(text)).numpy()
    assert tuned.loss_alone == pytest.approx(-model.mean())
    assert np.log(probabilities(tuned.cache, readings(text, 9))).mean() == pytest.approx(-tuned.loss)
    for size in (3, 20):
        for theta in (0.0, 1.0):
            for weight in np.arange(0, 1, 0.1):
                cache = CachePointer(size, theta, float(weight))
                assert -np.log(probabilities(cache, readings(text, 9))).mean() >= tuned.loss - 1e-9


def test_tuning_finds_likeness_at_any_scale() -> None:
    """Contexts of three kinds, each followed by a token of its own: the cache should listen to its like alone."""
    random = np.random.default_rng(0)
    kinds = random.integers(0, 3, 300)
    for scale in (0.01, 1.0, 100.0):
        features = torch.from_numpy((np.eye(3)[kinds] + random.normal(size=(300, 3)) * 0.1) * scale)
        tuned = tune(readings(kinds.tolist(), 64, features))
        assert tuned.cache.theta > 0
        assert tuned.cache.weight > 0.9
        assert tuned.loss < 0.1 < tuned.loss_alone


@pytest.mark.parametrize(
    ("size", "theta", "weight"), [(0, 0.1, 0.1), (10, -1.0, 0.1), (10, math.inf, 0.1), (10, 0.1, 1.0), (10, 0.1, -0.1)]
)
def test_what_cannot_be(size: int, theta: float, weight: float) -> None:
    with pytest.raises(ConfigError, match="a cache of"):
        CachePointer(size, theta, weight)
