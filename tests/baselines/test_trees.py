from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prpn.baselines.trees import (
    RANDOM_BASELINES,
    balanced,
    baselines,
    left,
    random_distances,
    random_tree,
    right,
    upper,
)
from prpn.trees import Builder, Tree, build
from prpn.trees.protocols import PROTOCOLS
from prpn.trees.scores import f1_between
from tests.reference import scores as reference
from tests.reference.trees import binary_trees, brackets
from tests.trees.test_from_distances import letters
from tests.trees.test_protocols import cleaned, gold_texts, has_words
from tests.trees.test_tree import deep_brackets, trees

BUILDERS = pytest.mark.parametrize("builder", ["paper", "unbiased"])
MANY = 100_000


def is_binary(tree: Tree) -> bool:
    return len(tree.spans()) == len(set(tree.spans())) == max(0, len(tree) - 1)


# Without chance


@pytest.mark.parametrize("count", range(1, 20))
def test_left_right_and_balanced_as_defined(count: int) -> None:
    words = letters(count)
    assert left(words).brackets() == brackets(reference.left(words))
    assert right(words).brackets() == brackets(reference.right(words))
    assert balanced(words).brackets() == brackets(reference.balanced(words))


def test_examples() -> None:
    words = letters(5)
    assert left(words).brackets() == "((((a b) c) d) e)"
    assert right(words).brackets() == "(a (b (c (d e))))"
    assert balanced(words).brackets() == "((a b) (c (d e)))"
    assert upper(Tree.from_brackets("(a (b c d) e)")).brackets() == "(a ((b (c d)) e))"


def test_small_sentences() -> None:
    random = np.random.default_rng(0)
    for size, expected in enumerate(["()", "(a)", "(a b)"]):
        words = letters(size)
        gold = Tree.from_brackets(expected)
        built = [left(words), right(words), balanced(words), random_tree(words, random), upper(gold)]
        built += [random_distances(words, random, "paper"), random_distances(words, random, "unbiased")]
        assert [tree.brackets() for tree in built] == [expected] * len(built)
    assert upper(Tree.from_brackets("((a))")).brackets() == "(a)"
    assert upper(Tree.from_brackets("(((a) (b)))")).brackets() == "(a b)"


# With chance


def chi_square(counts: Counter[str], outcomes: int) -> float:
    expected = counts.total() / outcomes
    return sum((count - expected) ** 2 / expected for count in counts.values())


@pytest.mark.parametrize(("count", "outcomes", "limit"), [(3, 2, 10.8), (4, 5, 18.5), (5, 14, 34.5)])
def test_random_trees_are_uniform(count: int, outcomes: int, limit: float) -> None:
    """The limits are exceeded once in a thousand times by chance; the seed is fixed."""
    words, random = letters(count), np.random.default_rng(11)
    found = Counter(random_tree(words, random).brackets() for _ in range(300 * outcomes))
    assert set(found) == {brackets(tree) for tree in binary_trees(words)}
    assert len(found) == outcomes
    assert chi_square(found, outcomes) < limit


def test_random_distances_are_not_uniform() -> None:
    """Which is why they stand beside random trees: `unbiased` favours balanced trees, `paper` right branching."""
    random = np.random.default_rng(11)
    for builder, favoured in (("unbiased", "((a b) (c d))"), ("paper", "(a (b (c d)))")):
        found = Counter(random_distances(letters(4), random, builder).brackets() for _ in range(1500))
        assert found.most_common(1)[0][0] == favoured
        assert chi_square(found, 5) > 18.5


@given(st.integers(0, 60), st.integers(0, 9999))
def test_any_random_tree_is_binary(size: int, seed: int) -> None:
    words = [f"w{i}" for i in range(size)]
    tree = random_tree(words, np.random.default_rng(seed))
    assert tree.words == tuple(words)
    assert is_binary(tree)
    assert tree == random_tree(words, np.random.default_rng(seed))


@BUILDERS
@given(size=st.integers(0, 30), seed=st.integers(0, 9999))
def test_random_distances_go_through_the_builder(builder: Builder, size: int, seed: int) -> None:
    words = [f"w{i}" for i in range(size)]
    tree = random_distances(words, np.random.default_rng(seed), builder)
    assert tree == build(words, np.random.default_rng(seed).random(size), builder)
    assert is_binary(tree)


# With the gold tree


@given(gold_texts().filter(has_words))
def test_upper_as_defined(text: str) -> None:
    (gold,) = reference.penn(text)
    assert upper(cleaned(text)).brackets() == brackets(reference.upper(gold))


@given(trees())
def test_upper_is_binary_and_has_every_gold_bracket(gold: Tree) -> None:
    found = upper(gold)
    assert found.words == gold.words
    assert is_binary(found)
    assert set(gold.spans()) <= set(found.spans())


@given(trees().filter(lambda tree: len(tree) <= 6))
def test_no_binary_tree_scores_higher_than_upper(gold: Tree) -> None:
    every = [Tree.from_brackets(brackets(tree)) for tree in binary_trees(letters(len(gold)))]
    for protocol in PROTOCOLS.values():
        best = max(f1_between([tree], [gold], protocol) for tree in every)
        assert f1_between([upper(gold)], [gold], protocol) == pytest.approx(best), protocol.name


@BUILDERS
def test_all_by_name(builder: Builder) -> None:
    found = baselines(builder)
    assert list(found) == ["left", "right", "balanced", "random", "random-distances", "upper"]
    assert set(RANDOM_BASELINES) < set(found)
    gold = Tree.from_brackets("(a (b c d) e (f (g h)))")
    assert found["left"](gold, np.random.default_rng(0)) == left(gold.words)
    assert found["right"](gold, np.random.default_rng(0)) == right(gold.words)
    assert found["balanced"](gold, np.random.default_rng(0)) == balanced(gold.words)
    assert found["upper"](gold, np.random.default_rng(0)) == upper(gold)
    assert found["random"](gold, np.random.default_rng(5)) == random_tree(gold.words, np.random.default_rng(5))
    expected = random_distances(gold.words, np.random.default_rng(5), builder)
    assert found["random-distances"](gold, np.random.default_rng(5)) == expected
    for name, baseline in found.items():
        random = np.random.default_rng(0)
        assert (len({baseline(gold, random) for _ in range(20)}) > 1) == (name in RANDOM_BASELINES), name


# Length and depth are no limit


@pytest.mark.parametrize("name", baselines("paper"))
def test_a_hundred_thousand_words(name: str) -> None:
    gold = Tree.from_brackets(f"({'w ' * MANY})")
    begun = time.process_time()
    tree = baselines("paper")[name](gold, np.random.default_rng(0))
    assert time.process_time() - begun < 10
    assert is_binary(tree)


@pytest.mark.parametrize("side", ["left", "right"])
def test_upper_of_a_deep_tree(side: str) -> None:
    gold = Tree.from_brackets(deep_brackets(MANY // 2, side))
    begun = time.process_time()
    assert upper(gold) == gold, "it is binary already"
    assert time.process_time() - begun < 10
