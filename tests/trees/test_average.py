from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prpn.baselines.trees import left, random_tree, right
from prpn.errors import ConfigError, InputError
from prpn.trees import Tree
from prpn.trees.average import LONGEST, average
from tests.reference.trees import binary_trees, brackets
from tests.trees.test_from_distances import letters
from tests.trees.test_tree import trees

WEIGHTS = st.integers(0, 8).map(lambda eighths: eighths / 8)  # sums are exact, so that ties are ties


@st.composite
def ballots(draw: st.DrawFn, longest: int) -> tuple[list[Tree], list[float]]:
    """Binary trees of one sentence, and their weights."""
    words = letters(draw(st.integers(1, longest)))
    random = np.random.default_rng(draw(st.integers(0, 9999)))
    weights = draw(st.lists(WEIGHTS, min_size=1, max_size=6))
    return [random_tree(words, random) for _ in weights], weights


@st.composite
def any_ballots(draw: st.DrawFn) -> tuple[list[Tree], list[float]]:
    """Trees of any shape over the same words: each the start of a drawn tree, the rest of its words behind."""
    drawn = draw(st.lists(trees(), min_size=1, max_size=4))
    size = draw(st.integers(1, min(6, *(len(tree) for tree in drawn), 6)))
    cut = [[c._replace(end=min(c.end, size)) for c in tree.constituents if c.start < size] for tree in drawn]
    weights = draw(st.lists(WEIGHTS, min_size=len(drawn), max_size=len(drawn)))
    return [Tree(tuple(letters(size)), tuple(constituents)) for constituents in cut], weights


def votes(tree: Tree, among: Sequence[Tree], weights: Sequence[float]) -> float:
    """A voter has one vote for a span, however often it holds the span."""
    spans = [set(voter.spans()) for voter in among]
    return sum(weight for span in tree.spans() for voter, weight in zip(spans, weights, strict=True) if span in voter)


def all_trees(count: int) -> list[Tree]:
    return [Tree.from_brackets(brackets(tree)) for tree in binary_trees(letters(count))]


def splits(tree: Tree) -> list[int]:
    """Where each constituent of a binary tree is split, in pre-order."""
    ends = {}
    for start, end in reversed(tree.spans()):
        ends.setdefault(start, []).append(end)  # from the shortest to the longest
    inner = {(start, one): other for start, found in ends.items() for other, one in pairwise([start + 1, *found])}
    return [inner[span] for span in tree.spans()]


@given(st.integers(0, 12), st.integers(0, 9999), st.integers(1, 4))
def test_identical_trees(size: int, seed: int, times: int) -> None:
    tree = random_tree(letters(size), np.random.default_rng(seed))
    assert average([tree] * times) == tree
    assert average([tree], [0.25]) == tree


@given(ballots(longest=30))
def test_no_voter_has_more_votes(drawn: tuple[list[Tree], list[float]]) -> None:
    found = average(*drawn)
    assert found.words == drawn[0][0].words
    assert len(set(found.spans())) == len(found) - 1
    assert all(votes(found, *drawn) >= votes(tree, *drawn) for tree in drawn[0])


@given(ballots(longest=7) | any_ballots())
def test_no_binary_tree_has_more_votes_and_of_equal_ones_the_first_to_split_wins(
    drawn: tuple[list[Tree], list[float]],
) -> None:
    every = all_trees(len(drawn[0][0]))
    most = max(votes(tree, *drawn) for tree in every)
    best = [tree for tree in every if votes(tree, *drawn) == most]
    assert average(*drawn) == min(best, key=splits)


@pytest.mark.parametrize("count", [1, 2, 5, 7])
def test_seven_words_and_many_voters(count: int) -> None:
    random = np.random.default_rng(count)
    voters = [random_tree(letters(7), random) for _ in range(count)]
    weights = random.random(count).tolist()
    most = max(votes(tree, voters, weights) for tree in all_trees(7))
    assert votes(average(voters, weights), voters, weights) == pytest.approx(most, rel=1e-12)


def test_majority() -> None:
    words = letters(5)
    one, two = Tree.from_brackets("((a b) (c (d e)))"), Tree.from_brackets("((a b) ((c d) e))")
    assert average([one, two, two]) == two
    assert average([one, two, two], [3, 1, 1]) == one
    assert average([left(words), right(words), one]).brackets() == "((a b) (c (d e)))"
    mixed = [Tree.from_brackets(text) for text in ("((a b) c d e)", "(a b c (d e))", "(a b (c d e))")]
    assert average(mixed).brackets() == "((a b) (c (d e)))", "which no voter is"


def test_ties_split_first() -> None:
    words = letters(4)
    assert average([left(words), right(words)]) == right(words)
    assert average([right(words), left(words)]) == right(words)
    assert average([Tree.from_brackets("(a b c d)")]) == right(words)


def test_weights() -> None:
    words = letters(6)
    assert average([left(words), right(words)], [1.0, 0.0]) == left(words)
    assert average([left(words), right(words)], [0.51, 0.49]) == left(words)
    assert average([left(words)] * 2, [0, 0]) == right(words), "no votes at all: every tree is as good"


def test_a_repeated_constituent_is_one_vote() -> None:
    chain = Tree.from_brackets("(((a b)) c)")
    assert average([chain, right(letters(3))]) == right(letters(3))
    assert average([chain] * 2 + [right(letters(3))]) == left(letters(3))


def test_small_sentences() -> None:
    assert average([Tree((), ())]) == Tree((), ())
    assert average([Tree.from_brackets("(a)"), Tree.from_brackets("((a))")]).brackets() == "(a)"
    assert average([Tree.from_brackets("((a b))")]).brackets() == "(a b)"


def test_labels_are_left_behind() -> None:
    tree = right(["a", "b", "c"])
    labelled = Tree(tree.words, tuple(part._replace(label="NP") for part in tree.constituents))
    assert average([labelled, labelled]) == tree


@pytest.mark.parametrize(
    ("given_trees", "weights", "error", "cause"),
    [
        ([], None, ConfigError, "no trees"),
        ([], [], ConfigError, "no trees"),
        (["(a b)"], [1, 2], ConfigError, "2 weights for 1 trees"),
        (["(a b)", "(a b)"], [1], ConfigError, "1 weights for 2 trees"),
        (["(a b)"], [-1], ConfigError, "weight -1"),
        (["(a b)"], [math.nan], ConfigError, "weight nan"),
        (["(a b)"], [math.inf], ConfigError, "weight inf"),
        (["(a b)", "(a b c)"], None, InputError, "tree 2 is not over the words of tree 1"),
        (["(a b)", "(a b)", "(a x)"], None, InputError, "tree 3 is not over the words of tree 1"),
    ],
)
def test_what_cannot_be_averaged(
    given_trees: list[str], weights: list[float] | None, error: type[Exception], cause: str
) -> None:
    with pytest.raises(error, match=cause):
        average([Tree.from_brackets(text) for text in given_trees], weights)


def test_long_sentences() -> None:
    words = ["w"] * 300
    random = np.random.default_rng(3)
    voters = [random_tree(words, random) for _ in range(5)]
    begun = time.process_time()
    found = average(voters)
    assert time.process_time() - begun < 10
    assert votes(found, voters, [1] * 5) >= max(votes(tree, voters, [1] * 5) for tree in voters)


def test_votes_of_endless_sentences_would_not_fit() -> None:
    with pytest.raises(InputError, match=r"3,001 words.*leave out sentences of more than 3,000"):
        average([right(["w"] * (LONGEST + 1))])
