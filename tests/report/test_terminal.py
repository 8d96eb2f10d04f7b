import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from prpn.errors import InputError
from prpn.report.terminal import draw_distances, draw_sentence
from prpn.trees import Tree, build

WORDS = ["the", "old", "man", "sat", "on", "the", "bench"]
DISTANCES = [1.0, 0.6, 0.1, 0.8, 0.9, 0.3, 0.15]


def test_bars_above_and_tree_below() -> None:
    tree = build(WORDS, DISTANCES, "unbiased")
    assert draw_sentence(WORDS, DISTANCES, tree).split("\n") == [
        "███                     ▄▄▄",
        "███               ▇▇▇   ███",
        "███   ▆▆▆         ███   ███",
        "███   ███         ███   ███  ▁▁▁",
        "███   ███   ▁▁▁   ███   ███  ███   ▂▂▂",
        "   the   old   man   sat   on   the   bench",
        "    │     └──┬──┘     │    │     └──┬───┘",
        "    └───┬────┘        │    └───┬────┘",
        "        └──────┬──────┘        │",
        "               └───────┬───────┘",
    ]


def test_one_word_a_line_when_the_row_does_not_fit() -> None:
    tree = build(WORDS, DISTANCES, "unbiased")
    assert draw_sentence(WORDS, DISTANCES, tree, width=28).split("\n") == [
        "████████████ 1.00  ┬┬┬ the",
        "██████▋      0.60  ││└┬ old",
        "▏            0.10  ││ └ man",
        "█████████▍   0.80  │└ sat",
        "██████████▋  0.90  └┬ on",
        "██▋          0.30   └┬ the",
        "▋            0.15    └ bench",
    ]


def test_distances_alone() -> None:
    assert draw_distances(["a", "b"], [0, 1]).split("\n") == ["    ███"] * 4 + ["▁▁▁ ███", "   a   b"]
    assert draw_distances(["a", "b"], [0, 1], width=3).split("\n") == ["▏            0.00  a", "████████████ 1.00  b"]


def test_bars_stand_in_the_gap_before_wide_words() -> None:
    *_, bars, words = draw_distances(["蘋果", "cafe\u0301", "x"], [1, 1, 1]).split("\n")
    assert words == "   蘋果   cafe\u0301   x"
    assert bars == "▁▁▁    ▁▁▁    ▁▁▁"


@pytest.mark.parametrize("distances", [[0, 0, 0], [math.inf] * 3, [-math.inf] * 3])
def test_equal_distances_are_flat(distances: list[float]) -> None:
    assert len(set(draw_distances(["a", "b", "c"], distances).split("\n")[-2].replace(" ", ""))) == 1


def test_infinite_distances_count_as_the_nearest_finite_one() -> None:
    finite = draw_distances(["a", "b", "c", "d"], [2, 2, 1, 1])
    assert draw_distances(["a", "b", "c", "d"], [math.inf, 2, 1, -math.inf]) == finite


def test_no_words() -> None:
    assert draw_distances([], []) == ""
    assert draw_sentence([], [], Tree((), ())) == ""


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(InputError, match="not a number"):
        draw_distances(["a"], [math.nan])
    with pytest.raises(InputError, match="2 words"):
        draw_distances(["a", "b"], [1])
    with pytest.raises(ValueError, match="a tree over 1 words cannot be drawn under 2"):
        draw_sentence(["a", "b"], [0, 1], Tree.from_brackets("(a)"))


@given(st.lists(st.floats(-99, 99), min_size=1, max_size=40), st.integers(60, 130))
def test_every_sentence_fits_and_shows_every_word(distances: list[float], width: int) -> None:
    words = [f"w{i}" for i in range(len(distances))]
    drawing = draw_sentence(words, distances, build(words, distances, "paper"), width)
    shown = drawing.translate(str.maketrans("()", "  ")).split()
    assert [token for token in shown if token.startswith("w")] == words
    if "(" not in drawing:
        assert max(map(cell_len, drawing.split("\n"))) <= width
