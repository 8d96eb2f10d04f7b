"""Boundaries of characters: figures of texts whose distances are known, and a loop that anyone can check."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prpn.errors import InputError
from prpn.language.boundaries import area_under_curve, boundaries

TEXT = "the old man sat_on the bench "
IS_SPACE = np.array([letter == " " for letter in TEXT])


def test_distances_that_mark_spaces_are_found_out() -> None:
    found = boundaries(IS_SPACE, IS_SPACE.astype(float), memory_slots=40)
    assert (found.end, found.begin) == (1.0, 0.5)
    assert found.reaches.letters_stop == found.reaches.letters_at_space == 1.0
    assert found.reaches.spaces_go_on == 1.0
    assert found.shuffled.letters_stop < 1.0
    assert (found.words, found.inside) == (6, len(TEXT) - 12)


def test_distances_that_mark_the_inside_are_found_out() -> None:
    found = boundaries(IS_SPACE, -IS_SPACE.astype(float), memory_slots=40)
    assert found.end == 0.0
    assert found.reaches.letters_stop == 0.0
    assert found.reaches.spaces_go_on == 0.0


def test_the_memory_bounds_the_reach() -> None:
    flat = np.zeros(len(TEXT))
    assert boundaries(IS_SPACE, flat, memory_slots=40).reaches.letters_stop == 0.0
    one = boundaries(IS_SPACE, flat, memory_slots=1).reaches
    assert one.letters_stop == 1.0
    assert one.letters_at_space == pytest.approx(5 / 20)  # the first letters of words
    assert boundaries(IS_SPACE, flat, memory_slots=40).end == 0.5


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=40), st.integers(1, 12))
def test_figures_are_those_of_a_loop(drawn: list[tuple[bool, int]], slots: int) -> None:
    is_space, d = [flag for flag, _ in drawn], [float(value) for _, value in drawn]
    before = [True, *is_space[:-1]]
    ends = [d[t] for t in range(len(d)) if is_space[t] and not before[t]]
    inside = [d[t] for t in range(len(d)) if not is_space[t] and not before[t]]
    if len(ends) < 2 or not inside:
        with pytest.raises(InputError, match="no two words"):
            boundaries(np.array(is_space), np.array(d), slots)
        return
    found = boundaries(np.array(is_space), np.array(d), slots)
    pairs = [(a > b) + 0.5 * (a == b) for a in ends for b in inside]
    assert found.end == pytest.approx(sum(pairs) / len(pairs))
    stop, at_space, go_on = [], [], []
    for t in range(len(d)):
        spaces = [i for i in range(t) if is_space[i]]
        if not spaces:
            continue
        start = max([0, t - slots, *(i for i in range(t) if d[i] > d[t])])
        if is_space[t]:
            go_on.append(start < spaces[-1])
        else:
            stop.append(start >= spaces[-1])
            at_space.append(start == spaces[-1])
    assert found.reaches.letters_stop == pytest.approx(np.mean(stop))
    assert found.reaches.letters_at_space == pytest.approx(np.mean(at_space))
    assert found.reaches.spaces_go_on == pytest.approx(np.mean(go_on))


def test_the_area_counts_ties_half() -> None:
    assert area_under_curve(np.array([1.0, 2.0]), np.array([1.0, 0.0, 3.0])) == pytest.approx((1.5 + 2) / 6)
