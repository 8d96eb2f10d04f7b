"""Intervals and differences against resampling sentence by sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from prpn.baselines.trees import left, random_tree, right
from prpn.trees import Tree
from prpn.trees.protocols import PROTOCOLS, Protocol
from prpn.trees.scores import Bootstrap, Figures, GoldBrackets, difference, f1_between, figures
from tests.reference import scores as reference
from tests.trees.test_tree import trees

Row = tuple[int, int, int]
EVERY_PROTOCOL = pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)


@st.composite
def counts(draw: st.DrawFn, draws: int = 1) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Counts (D, S, 3), and which sentences count."""
    sentences = draw(st.integers(1, 8))
    row = st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)).map(lambda r: (min(r), r[1], r[2]))
    rows = draw(st.lists(st.lists(row, min_size=sentences, max_size=sentences), min_size=draws, max_size=draws))
    included = draw(st.lists(st.booleans(), min_size=sentences, max_size=sentences))
    return np.array(rows, dtype=np.int64).reshape(draws, sentences, 3), np.array(included, dtype=bool)


def f1_of(rows: Sequence[Row], protocol: Protocol) -> float:
    """In percent; nothing to score is without a fault."""
    if protocol.over_corpus:
        matched, predicted, gold = (sum(column) for column in zip(*rows, strict=True)) if rows else (0, 0, 0)
        return 100 * reference.ratios(matched, gold, predicted)[2]
    each = [reference.ratios(matched, gold, predicted)[2] for matched, predicted, gold in rows]
    return 100 * sum(each) / len(each) if each else 100.0


def resampled(drawn: NDArray[np.int64], included: Sequence[bool], protocol: Protocol, indices: list[int]) -> float:
    """F1 of the sentences with these indices, averaged over the draws."""
    taken = [index for index in indices if included[index]]
    values = [f1_of([tuple(draw[index]) for index in taken], protocol) for draw in drawn.tolist()]
    return sum(values) / len(values)


def resamples_of(sentences: int, resamples: int, seed: int) -> list[list[int]]:
    random = np.random.default_rng(seed)
    return [random.integers(sentences, size=sentences).tolist() for _ in range(resamples)]


def treebank(sentences: int = 60) -> list[Tree]:
    random = np.random.default_rng(7)
    return [random_tree(tuple("abcdefghijkl"[: 2 + i % 11]), random) for i in range(sentences)]


def all_of(golds: Sequence[Tree], predicted: Sequence[Tree], name: str) -> tuple[Figures, NDArray[np.float64]]:
    protocol = PROTOCOLS[name]
    gold, bootstrap = GoldBrackets(golds, [protocol]), Bootstrap(len(golds))
    drawn, included = gold.counts(predicted, [protocol])[name][None], protocol.included(gold.lengths)
    samples = bootstrap.samples(drawn, protocol, included)
    return figures(drawn, protocol, included, samples), samples


@EVERY_PROTOCOL
@pytest.mark.parametrize("draws", [1, 3])
@given(data=st.data())
def test_resamples_are_scored_like_treebanks(protocol: Protocol, draws: int, data: st.DataObject) -> None:
    drawn, included = data.draw(counts(draws))
    size = drawn.shape[1], data.draw(st.sampled_from([1, 7, 51])), data.draw(st.integers(0, 99))
    expected = [resampled(drawn, included.tolist(), protocol, indices) for indices in resamples_of(*size)]
    np.testing.assert_allclose(Bootstrap(*size).samples(drawn, protocol, included), expected, atol=1e-9)


def test_draws_take_as_many_sentences_as_there_are_each_with_the_same_chance() -> None:
    bootstrap = Bootstrap(40, resamples=2000)
    assert (bootstrap.weights.sum(axis=1) == 40).all()
    np.testing.assert_allclose(bootstrap.weights.mean(axis=0), np.ones(40), atol=0.15)
    assert bootstrap.weights.std() == pytest.approx(math.sqrt(1 - 1 / 40), abs=0.02)
    assert (bootstrap.weights == Bootstrap(40, resamples=2000).weights).all()
    assert (bootstrap.weights != Bootstrap(40, resamples=2000, seed=1).weights).any()


@EVERY_PROTOCOL
@given(data=st.data())
def test_figures_are_averaged_over_the_draws(protocol: Protocol, data: st.DataObject) -> None:
    drawn, included = data.draw(counts(draws=3))
    together = figures(drawn, protocol, included)
    each = [figures(draw[None], protocol, included) for draw in drawn]
    for name in ("f1", "precision", "recall"):
        assert getattr(together, name) == pytest.approx(np.mean([getattr(one, name) for one in each]))
    everything = resampled(drawn, included.tolist(), protocol, list(range(drawn.shape[1])))
    assert together.f1 == pytest.approx(everything)
    assert math.isnan(together.low)
    assert math.isnan(together.high)


def test_the_interval_holds_the_middle_95_percent() -> None:
    drawn, included = np.array([[[1, 2, 3]]]), np.array([True])
    found = figures(drawn, PROTOCOLS["klein"], included, np.arange(201.0))
    assert (found.low, found.high) == (5, 195)
    assert (found.precision, found.recall, found.f1) == pytest.approx((50, 100 / 3, 40))


@EVERY_PROTOCOL
def test_the_interval_is_around_the_figure_and_narrows_with_more_sentences(protocol: Protocol) -> None:
    widths = []
    for sentences in (30, 480):
        golds = treebank(sentences)
        found, samples = all_of(golds, [right(gold.words) for gold in golds], protocol.name)
        assert 0 <= found.low < found.f1 < found.high <= 100
        assert np.mean(samples) == pytest.approx(found.f1, abs=1)
        widths.append(found.high - found.low)
    assert widths[1] == pytest.approx(widths[0] / 4, rel=0.4), "sixteen times the sentences, a quarter of the width"


@EVERY_PROTOCOL
def test_a_system_does_not_differ_from_itself(protocol: Protocol) -> None:
    golds = treebank()
    system = all_of(golds, [left(gold.words) for gold in golds], protocol.name)
    found = difference(*system, *system)
    assert (found.difference, found.low, found.high, found.p) == (0, 0, 0, 1)


@EVERY_PROTOCOL
def test_a_clear_difference(protocol: Protocol) -> None:
    golds = treebank()
    best = all_of(golds, golds, protocol.name)
    other = all_of(golds, [left(gold.words) for gold in golds], protocol.name)
    forth, back = difference(*best, *other), difference(*other, *best)
    assert best[0].f1 == best[0].low == best[0].high == 100
    assert forth.difference == 100 - other[0].f1 > 0
    assert 0 < forth.low < forth.difference < forth.high
    assert forth.p == back.p == pytest.approx(2 / 1001)
    assert (back.difference, back.low, back.high) == pytest.approx((-forth.difference, -forth.high, -forth.low))


def test_p_counts_the_resamples_on_the_wrong_side() -> None:
    none = Figures(0, 0, 0, 0, 0)
    gaps = np.array([-1.0] * 9 + [0.0] * 10 + [1.0] * 80)
    found = difference(none, gaps, none, np.zeros(99))
    assert found.p == pytest.approx(2 * (1 + 19) / 100)
    assert difference(none, -gaps, none, np.zeros(99)).p == found.p
    assert difference(none, np.array([1.0, -1.0]), none, np.zeros(2)).p == 1


def test_pairing_makes_the_interval_of_a_difference_narrow() -> None:
    golds = treebank()
    one = [right(gold.words) for gold in golds]
    other = [left(gold.words) if i == 5 else tree for i, (gold, tree) in enumerate(zip(golds, one, strict=True))]
    first, second = all_of(golds, one, "kim"), all_of(golds, other, "kim")
    found = difference(*first, *second)
    assert found.high - found.low < (first[0].high - first[0].low) / 3
    assert found.p > 0.05, "a single sentence is often not drawn"


@EVERY_PROTOCOL
def test_nothing_to_score(protocol: Protocol) -> None:
    drawn, nobody = np.array([[[1, 2, 3]], [[0, 1, 1]]]), np.array([False])
    found = figures(drawn, protocol, nobody, Bootstrap(1).samples(drawn, protocol, nobody))
    assert found == Figures(100, 100, 100, 100, 100)
    assert f1_between([], [], protocol) == 100
    gold = GoldBrackets([], [protocol])
    assert gold.counts([], [protocol])[protocol.name].shape == (0, 3)


def test_resamples_that_miss_every_sentence_that_counts() -> None:
    """One of two sentences counts, so a quarter of the resamples has nothing to score; no two protocols disagree."""
    drawn, included = np.array([[[0, 1, 1], [0, 0, 0]]]), np.array([True, False])
    bootstrap = Bootstrap(2, resamples=50)
    expected = np.where(bootstrap.weights[:, 0] > 0, 0.0, 100.0)
    assert set(expected) == {0, 100}
    for protocol in PROTOCOLS.values():
        np.testing.assert_array_equal(bootstrap.samples(drawn, protocol, included), expected)


@EVERY_PROTOCOL
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_agreement_of_binary_trees_is_symmetric(protocol: Protocol, sizes: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    first, second = ([random_tree(["w"] * size, random) for size in sizes] for _ in range(2))
    assert f1_between(first, second, protocol) == pytest.approx(f1_between(second, first, protocol))
    assert f1_between(first, first, protocol) == 100


@EVERY_PROTOCOL
@given(gold=trees(), seed=st.integers(0, 99))
def test_agreement_is_the_score_against_the_other(protocol: Protocol, gold: Tree, seed: int) -> None:
    other = random_tree(gold.words, np.random.default_rng(seed))
    ours, theirs = protocol.brackets(other), protocol.brackets(gold)
    f1 = 2 * len(ours & theirs) / (len(ours) + len(theirs)) if ours or theirs else 1.0
    assert f1_between([other], [gold], protocol) == pytest.approx(100 * f1)


def test_as_many_predictions_as_gold_trees() -> None:
    golds = treebank(3)
    with pytest.raises(ValueError, match="argument"):
        GoldBrackets(golds, [PROTOCOLS["kim"]]).counts(golds[:2], [PROTOCOLS["kim"]])


@given(st.lists(trees(), min_size=1, max_size=3))
def test_counts_of_all_protocols_at_once(golds: list[Tree]) -> None:
    predicted = [right(gold.words) for gold in golds]
    protocols = list(PROTOCOLS.values())
    together = GoldBrackets(golds, protocols).counts(predicted, protocols)
    assert list(together) == list(PROTOCOLS)
    for protocol in protocols:
        alone = GoldBrackets(golds, [protocol]).counts(predicted, [protocol])[protocol.name]
        assert together[protocol.name].tolist() == alone.tolist()
        assert alone[:, 1].tolist() == [len(protocol.brackets(tree)) for tree in predicted]
        assert alone[:, 2].tolist() == [len(protocol.brackets(tree)) for tree in golds]
        assert (alone[:, 0] <= alone[:, 1:].min(axis=1)).all()
