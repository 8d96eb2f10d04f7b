"""What punctuation tells: words that are said, marks, and the tree that is left without them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prpn.trees import build
from prpn.trees.cleaning import is_word, restrict
from prpn.trees.punctuation import between_marks, is_mark, split_at_marks, spoken_part
from prpn.trees.reach import distances_of
from tests.reference.trees import at_marks_first, brackets


@pytest.mark.parametrize(
    ("word", "spoken", "mark"),
    [
        ("man", True, False), ("U.S.", True, False), ("'s", True, False), ("3.5", True, False), ("-LRB-", False, True),
        (",", False, True), ("...", False, True), ("--", False, True), ("``", False, True), ("”", False, True),
        ("。", False, True), ("(", False, True), ("%", False, False), ("$", False, False), ("'", False, False),
        ("’", False, False), ("¿", False, True),
    ],
)  # fmt: skip
def test_kinds_of_words(word: str, spoken: bool, mark: bool) -> None:
    assert (is_word(word), is_mark(word)) == (spoken, mark)


def test_words_between_marks() -> None:
    words = ["the", "old", "man", ",", "who", "sat", "on", "the", "bench", ",", "left", "."]
    assert between_marks(words).spans() == [(0, 12), (0, 3), (4, 9)]
    assert between_marks(["just", "words"]).spans() == [(0, 2)]
    assert between_marks([",", "and", "so"]).spans() == [(0, 3), (1, 3)]


@given(st.lists(st.tuples(st.sampled_from("ab,."), st.integers(-3, 3)), min_size=2, max_size=12))
def test_marks_come_before_distances(drawn: list[tuple[str, int]]) -> None:
    words, distances = [word for word, _ in drawn], [float(distance) for _, distance in drawn]
    tree = split_at_marks(words, np.array(distances))
    assert tree.brackets() == brackets(at_marks_first(words, distances, ",."))
    assert set(between_marks(words).spans()) <= set(tree.spans())


@given(st.data())
def test_the_spoken_part_is_the_tree_without_the_rest(data: st.DataObject) -> None:
    words = data.draw(st.lists(st.sampled_from(["a", "b", ",", "%"]), min_size=2, max_size=12))
    distances = data.draw(st.permutations(range(len(words))))
    tree = build(words, np.array(distances, dtype=float), "unbiased")
    kept, heights = spoken_part(words, np.array(distances_of(tree)))
    assert kept == [word for word in words if word in "ab"]
    if len(kept) > 1:
        left = restrict(tree, [word in "ab" for word in words])
        expected = {(start, end) for start, end in left.spans() if end - start > 1}
        assert set(build(kept, heights, "unbiased").spans()) == expected
