import itertools
import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prpn.errors import ConfigError, InputError
from prpn.trees import Builder, Tree, build, has_ties
from prpn.trees.from_distances import LEANING, spans_of_many
from tests.reference import trees as reference

WITH_TIES = st.lists(st.sampled_from([0.0, 0.5, 1.0, -1.0, math.inf, -math.inf]), min_size=1, max_size=20)
DISTANCES = WITH_TIES | st.lists(st.floats(allow_nan=False), min_size=1, max_size=20)
QUARTERS = st.lists(st.integers(-30, 30).map(lambda k: k / 4), min_size=1, max_size=20)
"""Finite, with ties also after leaning, and exact in every sum."""
BUILDERS = pytest.mark.parametrize("builder", ["paper", "unbiased"])
ALL_BUILDERS = pytest.mark.parametrize("builder", get_args(Builder))


def letters(count: int) -> list[str]:
    return [chr(ord("a") + i) for i in range(count)]


@BUILDERS
@given(distances=DISTANCES)
def test_as_the_recursive_definition(builder: Builder, distances: list[float]) -> None:
    words = letters(len(distances))
    tree = build(words, distances, builder)
    assert tree.brackets() == reference.brackets(getattr(reference, builder)(words, distances))
    assert tree.words == tuple(words)
    assert len(tree.spans()) == len(words) - 1
    assert Tree.from_brackets(tree.brackets()) == tree


@ALL_BUILDERS
@given(distances=QUARTERS)
def test_leaning_as_the_recursive_definition(builder: Builder, distances: list[float]) -> None:
    words = letters(len(distances))
    expected = getattr(reference, builder.replace("-", "_"))(words, distances)
    assert build(words, distances, builder).brackets() == reference.brackets(expected)


@given(distances=st.permutations(range(12)))
def test_left_leaning_is_the_mirror_image(distances: list[int]) -> None:
    """The words read backwards, each with its distance; numbers without ties, for the first of them wins."""
    odd = [d / 7 for d in distances]
    words, size = letters(len(odd)), len(odd)
    backwards = build(words[::-1], [0.0, *odd[-2:0:-1], odd[1]], "right-leaning")
    expected = {(size - end, size - start) for start, end in backwards.spans()}
    assert set(build(words, odd, "left-leaning").spans()) == expected


def test_leaning_wants_more_of_a_later_split() -> None:
    words = letters(4)
    assert build(words, [0, 0, 0, 0.7], "right-leaning").brackets() == "(a (b (c d)))"
    assert build(words, [0, 0, 0, 1.6], "right-leaning").brackets() == "((a (b c)) d)"
    assert build(words, [0, 0.7, 0, 0], "left-leaning").brackets() == "(((a b) c) d)"
    assert build(words, [0, 1.6, 0, 0], "left-leaning").brackets() == "((a b) (c d))", "split after b, which closes"
    with pytest.raises(InputError, match="not all are finite"):
        build(words, [0, 0, math.inf, 0], "right-leaning")


@given(distances=DISTANCES)
def test_paper_is_unbiased_with_the_larger_of_two_neighbours_at_each_gap(distances: list[float]) -> None:
    words = letters(len(distances))
    gaps = [0.0, *map(max, itertools.pairwise(distances))]
    assert build(words, distances, "paper") == build(words, gaps, "unbiased")


@ALL_BUILDERS
@given(data=st.data())
def test_many_at_once_as_one_by_one(builder: Builder, data: st.DataObject) -> None:
    sentences = data.draw(st.lists((QUARTERS if builder in LEANING else DISTANCES) | st.just([]), max_size=6))
    ends = np.cumsum([len(distances) for distances in sentences], dtype=np.int64)
    starts, stops, span_ends = spans_of_many(np.concatenate([[], *sentences]), ends, builder)
    found = list(zip(starts.tolist(), stops.tolist(), strict=True))
    expected = [build(letters(len(distances)), distances, builder).spans() for distances in sentences]
    assert [found[begin:end] for begin, end in itertools.pairwise([0, *span_ends.tolist()])] == expected


@pytest.mark.parametrize("count", range(1, 7))
def test_unbiased_reaches_every_binary_tree(count: int) -> None:
    for tree in reference.binary_trees(letters(count)):
        built = build(letters(count), reference.heights_as_distances(tree), "unbiased")
        assert built.brackets() == reference.brackets(tree)


def test_paper_misses_some_binary_trees() -> None:
    words = letters(5)
    every = {reference.brackets(tree) for tree in reference.binary_trees(words)}
    reached = {build(words, order, "paper").brackets() for order in itertools.permutations(range(5))}
    assert every - reached == {"((a b) ((c d) e))"}


@BUILDERS
@given(distances=DISTANCES)
def test_without_ties_it_does_not_matter_which_maximum_wins(builder: Builder, distances: list[float]) -> None:
    ranks = {value: rank for rank, value in enumerate(sorted(set(distances)))}
    last_wins = [ranks[d] + i / len(distances) for i, d in enumerate(distances)]
    words = letters(len(distances))
    if not has_ties(distances, builder):
        assert build(words, last_wins, builder) == build(words, distances, builder)


def test_ties() -> None:
    assert has_ties([0, 1, 1], "paper")
    assert has_ties([1, 0, 1], "paper")
    assert not has_ties([1, 0, 1], "unbiased")
    assert not has_ties([0, 1, 2, 1], "unbiased"), "equal distances that never meet decide nothing"
    assert not has_ties([], "paper")


@BUILDERS
def test_equal_distances_branch_right(builder: Builder) -> None:
    assert build(letters(4), [0, 0, 0, 0], builder).brackets() == "(a (b (c d)))"


def test_example() -> None:
    words = ["the", "old", "man", "sat", "on", "the", "bench"]
    distances = [1.0, 0.6, 0.1, 0.8, 0.9, 0.3, 0.15]
    assert build(words, distances, "paper").brackets() == "(the (((old man) sat) (on (the bench))))"
    assert build(words, distances, "unbiased").brackets() == "(((the (old man)) sat) (on (the bench)))"


@BUILDERS
def test_arrays_and_small_sentences(builder: Builder) -> None:
    assert build(["a", "b"], np.array([0, 1], dtype=np.float32), builder).brackets() == "(a b)"
    assert build(["a"], [0.0], builder).brackets() == "(a)"
    assert build([], [], builder).brackets() == "()"


@BUILDERS
def test_what_cannot_be_built(builder: Builder) -> None:
    with pytest.raises(InputError, match="the one before 'b' is not a number"):
        build(["a", "b"], [0, math.nan], builder)
    with pytest.raises(InputError, match=r"shape \(3,\) for 2 words"):
        build(["a", "b"], [0, 1, 2], builder)
    with pytest.raises(ConfigError, match="choose paper, unbiased, right-leaning, left-leaning"):
        build(["a", "b"], [0, 1], "papr")  # type: ignore[arg-type]


@BUILDERS
@pytest.mark.parametrize("direction", [1, -1])
def test_a_hundred_thousand_words_that_branch_to_one_side(builder: Builder, direction: int) -> None:
    distances = direction * np.arange(100_000)
    assert len(build(["w"] * 100_000, distances, builder).spans()) == 99_999
