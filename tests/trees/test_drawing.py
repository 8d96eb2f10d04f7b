import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from prpn.trees import Tree, build
from prpn.trees.brackets import Constituent
from prpn.trees.drawing import branches, outline, word_row

POINT_UP = set("│└┘┴├┼")
POINT_DOWN = set("│┬├┼")
SHAPES = st.lists(st.integers(0, 5), min_size=1, max_size=25)


def drawn(text: str, width: int = 80) -> list[str]:
    return Tree.from_brackets(text).pretty(width).split("\n")


def tree_of(distances: list[int]) -> Tree:
    return build(["word"[: 1 + i % 4] for i in range(len(distances))], distances, "unbiased")


def test_above_the_words() -> None:
    assert drawn("((the (old man)) sat)") == [
        "     ┌──────┴──────┐",
        " ┌───┴────┐        │",
        " │     ┌──┴──┐     │",
        "the   old   man   sat",
    ]


def test_one_word_a_line() -> None:
    assert drawn("((the (old man)) sat)", width=14) == [
        "┬─┬─ the",
        "│ └─┬─ old",
        "│   └─ man",
        "└─ sat",
    ]


def test_many_children() -> None:
    assert drawn("(a b (c d e) f)", width=12) == ["┌─┬──┴┬───┐", "│ │ ┌─┼─┐ │", "a b c d e f"]
    assert drawn("(a b (c d e) f)", width=11) == ["┬─ a", "├─ b", "├─┬─ c", "│ ├─ d", "│ └─ e", "└─ f"]


def test_levels_that_do_not_fit_become_brackets() -> None:
    assert drawn("(a (b (c (d (e f)))) g)", width=5) == ["┬ a", "├┬ b", "│└┬ c", "│ └ (d", "│   (e", "│   f))", "└ g"]


def test_a_long_word_leaves_room_for_the_tree() -> None:
    assert drawn(f"({'a' * 99} (b (c d)))", width=20)[1:] == ["└─┬─ b", "  └─┬─ c", "    └─ d"]


def test_one_word_and_constituents_with_one_child() -> None:
    assert drawn("(word)") == ["word"]
    assert drawn("(word)", width=1) == ["word"]
    assert drawn("(((a) b))") == drawn("(a b)") == ["┌─┴─┐", "a   b"]


def test_wide_and_combining_characters_keep_their_columns() -> None:
    assert drawn("(蘋果 (cafe\u0301 x))") == [" ┌────┴────┐", " │      ┌──┴──┐", "蘋果   cafe\u0301   x"]


def test_words_of_no_width_still_have_a_column() -> None:
    row = word_row(["a", "\u0301", "b"], 80)
    assert row is not None
    assert row.middles == [3, 7, 11]
    assert cell_len(row.text) == 12


def test_spaces_are_visible() -> None:
    tree = Tree(("a", " "), (Constituent(0, 2),))
    assert tree.pretty().endswith("a   ▁")
    assert tree.pretty(width=3) == "┬ a\n└ ▁"


def test_right_to_left_scripts_are_drawn_one_word_a_line() -> None:
    assert drawn("(שלום (עולם טוב))") == ["┬─ שלום", "└─┬─ עולם", "  └─ טוב"]


@given(SHAPES)
def test_lines_below_the_words_meet(distances: list[int]) -> None:
    tree = tree_of(distances)
    row = word_row(tree.words, 200)
    assert row is not None
    lines = branches(tree, row)
    reaching_down = set(row.middles)
    for line in lines:
        assert {column for column, mark in enumerate(line) if mark in POINT_UP} == reaching_down
        reaching_down = {column for column, mark in enumerate(line) if mark in POINT_DOWN}
    assert len(reaching_down) == 1
    assert "".join(lines).count("└") == len(tree.spans())


@given(SHAPES, st.integers(3, 60))
def test_lines_beside_the_words_meet(distances: list[int], width: int) -> None:
    tree = tree_of(distances)
    lines = outline(tree, tree.words, width)
    assert [line.split(" ")[-1].strip("()") for line in lines] == list(tree.words)
    reaching_down: set[int] = set()
    for line in lines:
        assert {column for column, mark in enumerate(line) if mark in POINT_UP} == reaching_down
        reaching_down = {column for column, mark in enumerate(line) if mark in POINT_DOWN}
    assert not reaching_down
    assert "".join(lines).count("┬") + "".join(lines).count("(") == len(tree.spans())


@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_rows_fit(width: int) -> None:
    words = [f"word{i}" for i in range(12)]
    tree = build(words, [0.0] * 12, "unbiased")
    assert max(map(cell_len, tree.pretty(width).split("\n"))) <= width
