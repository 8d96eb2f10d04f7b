"""Reaches l_t: the paper's two rules on trees, distances that encode them, and the hard gates of the model."""

from __future__ import annotations

import math
from itertools import combinations, pairwise, permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from prpn.config import ModelConfig
from prpn.errors import InputError
from prpn.model.parsing import Parse, ParsingNetwork, gate_factors, stick
from prpn.trees import Tree, build, has_ties
from prpn.trees.brackets import Constituent
from prpn.trees.reach import distances_of, reach_starts, reach_starts_from_distances
from tests.reference import gates, reach
from tests.reference.trees import Nested, binary_trees, brackets

DISTANCES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, -1.0, math.inf, -math.inf]), max_size=20) | st.lists(
    st.floats(allow_nan=False), max_size=20
)
FLAVOURS = pytest.mark.parametrize("flavour", ["paper", "released"])


def letters(count: int) -> list[str]:
    return [chr(ord("a") + i) for i in range(count)]


@st.composite
def nested_trees(draw: st.DrawFn, most_children: int = 4, longest_chain: int = 2) -> Nested:
    """A tree over up to twelve words, in which chains of nodes with one child may lead to any word or node."""

    def over(words: list[str]) -> Nested:
        node: Nested = words[0]
        if len(words) > 1:
            cuts = st.sets(st.integers(1, len(words) - 1), min_size=1, max_size=most_children - 1)
            bounds = [0, *sorted(draw(cuts)), len(words)]
            node = [over(words[start:end]) for start, end in pairwise(bounds)]
        for _ in range(draw(st.integers(0, longest_chain))):
            node = [node]
        return node

    return over(letters(draw(st.integers(1, 12))))


NESTED = nested_trees()
BINARY = nested_trees(most_children=2, longest_chain=0)


def tree_of(nested: Nested) -> Tree:
    return Tree.from_brackets(brackets(nested))


def branches_in_two(tree: Tree) -> bool:
    """No node has three children or more; nodes with one child do not matter."""
    return len(set(tree.spans())) == len(tree) - 1


# Trees


@given(NESTED)
def test_reaches_by_the_two_rules(nested: Nested) -> None:
    assert reach_starts(tree_of(nested)) == reach.reach_starts(nested)


@given(NESTED)
def test_distances_are_heights(nested: Nested) -> None:
    assert distances_of(tree_of(nested)) == reach.distances_of(nested)


@pytest.mark.parametrize(
    ("text", "starts", "distances"),
    [
        ("()", [], []),
        ("(a)", [0], [1]),
        ("((a))", [0], [1]),
        ("(a b)", [0, 0], [2, 1]),
        ("(((a) ((b))))", [0, 0], [2, 1]),
        ("(a b c)", [0, 0, 0], [2, 1, 1]),
        ("(a (b c))", [0, 0, 1], [3, 2, 1]),
        ("((a b) c)", [0, 0, 0], [3, 1, 2]),
        ("(a (((b c) d) e) f)", [0, 0, 1, 1, 1, 0], [5, 4, 1, 2, 3, 4]),  # b begins three subtrees
        ("((a b) (c (d e)))", [0, 0, 0, 2, 3], [4, 1, 3, 2, 1]),
    ],
)
def test_small_trees(text: str, starts: list[int], distances: list[float]) -> None:
    tree = Tree.from_brackets(text)
    assert reach_starts(tree) == starts
    assert distances_of(tree) == distances


@given(NESTED)
def test_nodes_with_one_child_and_labels_change_nothing(nested: Nested) -> None:
    tree = tree_of(nested)
    spans = dict.fromkeys((start, end) for start, end, _ in tree.constituents)
    bare = Tree(tree.words, tuple(Constituent(*span, label="X") for span in spans))
    assert reach_starts(bare) == reach_starts(tree)
    assert distances_of(bare) == distances_of(tree)


@pytest.mark.parametrize("count", range(1, 8))
def test_distances_tell_all_other_trees_apart(count: int) -> None:
    distances = [tuple(distances_of(tree_of(nested))) for nested in reach.all_trees(letters(count))]
    assert len(set(distances)) == len(distances) == [1, 1, 3, 11, 45, 197, 903][count - 1]


# From a tree to distances and back


@pytest.mark.parametrize("count", range(1, 8))
def test_every_binary_tree_comes_back(count: int) -> None:
    for nested in binary_trees(letters(count)):
        tree, distances = tree_of(nested), distances_of(tree_of(nested))
        assert build(tree.words, distances, "unbiased") == tree
        assert not has_ties(distances, "unbiased")
        assert reach_starts_from_distances(distances) == reach_starts(tree) == reach.reach_starts(nested)


@pytest.mark.parametrize("count", range(1, 7))
def test_every_tree_has_the_reaches_of_its_distances(count: int) -> None:
    for nested in reach.all_trees(letters(count)):
        tree, distances = tree_of(nested), distances_of(tree_of(nested))
        assert reach_starts_from_distances(distances) == reach_starts(tree) == reach.reach_starts(nested)
        built = build(tree.words, distances, "unbiased")
        assert set(built.spans()) >= set(tree.spans())
        assert (built == tree) is branches_in_two(tree)
        assert has_ties(distances, "unbiased") is not branches_in_two(tree)


@given(NESTED)
def test_drawn_trees_have_the_reaches_of_their_distances(nested: Nested) -> None:
    tree, distances = tree_of(nested), distances_of(tree_of(nested))
    assert reach_starts_from_distances(distances) == reach_starts(tree)
    assert set(build(tree.words, distances, "unbiased").spans()) >= set(tree.spans())
    assert all(distance < distances[0] for distance in distances[1:])


@pytest.mark.parametrize("count", range(1, 8))
def test_no_two_binary_trees_have_the_same_reaches_and_other_trees_add_none(count: int) -> None:
    of_binary = [tuple(reach_starts(tree_of(nested))) for nested in binary_trees(letters(count))]
    assert len(set(of_binary)) == len(of_binary)
    assert {tuple(reach_starts(tree_of(nested))) for nested in reach.all_trees(letters(count))} == set(of_binary)


# The model's gates


class ToldDistances(ParsingNetwork):
    """A parsing network whose convolution is replaced by given scores (T, B, 2)."""

    told: Tensor

    def scores(self, embedding_tape: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.told


def parse_of(distances: list[float], flavour: str, temperature: float) -> Parse:
    """The model's gates where d_t is as given and d'_{t+1} guesses d_{t+1}; a slot more than words."""
    wanted = torch.tensor(distances, dtype=torch.float64)
    following = torch.cat([wanted[1:], torch.zeros(1)])
    scores = torch.stack([wanted, following], -1)[:, None]  # (T, 1, 2)
    if flavour == "released":  # into the range of its sigmoid, in the same order
        scores = (scores / (1 + scores.max())).logit(1e-3)
    config = ModelConfig(flavour=flavour, embedding=1, hidden=2, lookback=0, temperature=temperature)
    network = ToldDistances(config).double()
    network.told = scores
    steps = len(distances)
    embeddings, before = torch.zeros(steps, 1, 1), torch.full((steps + 1, 1), math.inf, dtype=torch.float64)
    return network(embeddings, embeddings[:0], before)


def open_positions(slots: Tensor, t: int) -> set[int]:
    """Where the gates (N) of the last N positions before t are open, −1 being right before the text."""
    assert set(slots.tolist()) <= {0.0, 1.0}
    return {t - len(slots) + k for k, gate in enumerate(slots.tolist()) if gate == 1}


@FLAVOURS
@given(nested=NESTED)
def test_gates_of_the_model_open_where_the_rules_say(flavour: str, nested: Nested) -> None:
    starts, distances = reach.reach_starts(nested), distances_of(tree_of(nested))
    parse = parse_of(distances, flavour, math.inf)
    assert open_positions(parse.reading_gates[0, 0], 0) == {-1}, "the zero state before the text"
    for t in range(1, len(starts)):
        assert open_positions(parse.reading_gates[t, 0], t) == set(range(starts[t], t))
        assert open_positions(parse.predict_gates[t - 1, 0], t - 1) == set(range(starts[t], t - 1)), "x_t is foreseen"


def sharp_gates(distances: list[float], flavour: str, temperature: float) -> list[list[float]]:
    """g_i^t for i = 0 … t − 1 and t = 1 …, hard, from the distances as they are and the model's own α."""
    config = ModelConfig(flavour=flavour, temperature=temperature)
    values = torch.tensor(distances)
    nearest = torch.ones(1)  # g_{t−1}^t = 1
    alphas = [gate_factors(values[t] - values[1:t], config) for t in range(1, len(distances))]
    return [stick(torch.cat([alpha, nearest])).tolist() for alpha in alphas]


@FLAVOURS
@pytest.mark.parametrize("temperature", [1.0, 10.0])
@given(nested=NESTED | BINARY)
def test_below_infinity_only_ties_differ(flavour: str, temperature: float, nested: Nested) -> None:
    """Heights differ by 1 or more, so hard α is 0 or 1 from τ = 1 up, but for the ½ at ties in `paper`."""
    tree = tree_of(nested)
    expected = [[float(i >= start) for i in range(t)] for t, start in enumerate(reach_starts(tree)) if t > 0]
    same = sharp_gates(distances_of(tree), flavour, temperature) == expected
    assert same is (flavour == "released" or branches_in_two(tree))


# Distances of any kind


@given(DISTANCES)
def test_reaches_of_distances_as_the_twin_finds_them(distances: list[float]) -> None:
    assert reach_starts_from_distances(distances) == [gates.reach_start(distances, t) for t in range(len(distances))]


@given(DISTANCES)
def test_reaches_never_overlap_in_part(distances: list[float]) -> None:
    starts = reach_starts_from_distances(distances)
    for s, t in combinations(range(len(starts)), 2):
        assert s <= starts[t] or starts[t] <= starts[s], (starts, s, t)


@given(DISTANCES)
def test_gates_and_the_unbiased_tree_agree_unless_order_decides(distances: list[float]) -> None:
    starts, words = reach_starts_from_distances(distances), letters(len(distances))
    agree = starts == reach_starts(build(words, distances, "unbiased"))
    assert agree is not has_ties(distances, "unbiased")
    ranks = {value: rank for rank, value in enumerate(sorted(set(distances)))}
    last_wins = [ranks[d] + i / len(distances) for i, d in enumerate(distances)]
    assert starts == reach_starts(build(words, last_wins, "unbiased"))


@pytest.mark.parametrize("count", range(1, 7))
def test_trees_of_the_paper_reach_less_far_than_its_gates(count: int) -> None:
    for distances in permutations(range(count)):
        larger = [max((i for i in range(t) if distances[i] > distances[t]), default=-1) for t in range(count)]
        in_tree = reach_starts(build(letters(count), distances, "paper"))
        assert in_tree[1:] == [min(larger[t] + 1, t - 1) for t in range(1, count)]
        assert reach_starts_from_distances(distances) == [max(0, i) for i in larger]


def test_smallest_tree_of_the_paper_that_contradicts_its_gates() -> None:
    assert build(letters(3), [3, 1, 2], "paper").brackets() == "(a (b c))"
    assert reach_starts_from_distances([3, 1, 2]) == [0, 0, 0], "c reads a, which is not in the smallest tree around it"


def test_what_has_no_reaches() -> None:
    with pytest.raises(InputError, match="the one before 'x_2' is not a number"):
        reach_starts_from_distances([0, 1, math.nan])
    with pytest.raises(InputError, match="give one for each word"):
        reach_starts_from_distances(np.zeros((2, 2)))


# What the paper says of its examples


def test_figure_1() -> None:
    """§4.2: in the tree of figure 1 "at time step t = 6, both 1 − α_2^6 and 1 − α_0^6 should be close to 1, and all
    other 1 − α_j^6 should be close to 0". So d_0 is large, and x_6 ends a constituent of x_2 … x_6 beside (x_0 x_1).
    """
    words = [f"x{i}" for i in range(7)]
    fitting = set()
    for nested in binary_trees(words):
        distances = distances_of(tree_of(nested))
        if [j for j in range(6) if distances[j] > distances[6]] == [0, 2]:
            fitting.add(brackets(nested))
            assert reach_starts(tree_of(nested))[6] == 2
    assert fitting == {f"((x0 x1) ({brackets(inner)} x6))" for inner in binary_trees(words[2:6])}


def test_words_with_disjoint_ranges_may_be_sisters() -> None:
    """Appendix C has them "belong to two different subtrees"."""
    starts = reach_starts(Tree.from_brackets("(x0 (x1 x2))"))
    assert [(starts[t], t) for t in (1, 2)] == [(0, 1), (1, 2)]


def test_siblings_near_zero_contradict_the_rules_where_a_node_has_three_children() -> None:
    """Appendix D: "if two adjacent words are siblings […], the syntactic distance should approximate zero"."""
    near_zero, larger = 0, 1
    assert reach_starts(Tree.from_brackets("((a b) c d)")) == [0, 0, 0, 0]
    assert reach_starts_from_distances([2, near_zero, larger, near_zero]) == [0, 0, 0, 2]


@given(BINARY)
def test_siblings_in_binary_trees_have_the_smallest_distance(nested: Nested) -> None:
    tree = tree_of(nested)
    pairs = {end - 1 for start, end in tree.spans() if end - start == 2}
    assert {t for t, distance in enumerate(distances_of(tree)) if t > 0 and distance == 1} == pairs


# Size

LONG = 100_000


def test_a_hundred_thousand_words_that_branch_to_the_right() -> None:
    tree = Tree(("w",) * LONG, tuple(Constituent(i, LONG) for i in range(LONG - 1)))
    assert reach_starts(tree) == [0, *range(LONG - 1)]
    assert distances_of(tree) == list(range(LONG, 0, -1))


def test_a_hundred_thousand_words_that_branch_to_the_left() -> None:
    tree = Tree(("w",) * LONG, tuple(Constituent(0, i) for i in range(LONG, 1, -1)))
    assert reach_starts(tree) == [0] * LONG
    assert distances_of(tree) == [LONG, *range(1, LONG)]


def test_a_hundred_thousand_words_in_any_tree() -> None:
    drawn = np.random.default_rng(1).permutation(LONG)
    for shape in (drawn, np.minimum(np.arange(LONG), np.arange(LONG)[::-1])):
        tree = build(("w",) * LONG, shape, "unbiased")
        distances = distances_of(tree)
        assert reach_starts_from_distances(distances) == reach_starts(tree)
        assert build(tree.words, distances, "unbiased") == tree


def test_a_chain_of_a_hundred_thousand_nodes_over_two_words() -> None:
    tree = Tree(("a", "b"), (Constituent(0, 2),) * LONG)
    assert reach_starts(tree) == [0, 0]
    assert distances_of(tree) == [2, 1]


def test_ten_thousand_sisters() -> None:
    tree = Tree(("w",) * LONG, (Constituent(0, LONG), *(Constituent(i, i + 10) for i in range(0, LONG, 10))))
    starts = reach_starts(tree)
    assert starts == reach_starts_from_distances(distances_of(tree))
    assert starts == [t - t % 10 if t % 10 else 0 for t in range(LONG)]
