"""Reading whatever hypothesis draws: an answer or a named error, never anything else."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from hypothesis import assume, example, given
from hypothesis import strategies as st

from prpn.trees.brackets import TOKEN
from prpn.trees.treebank import ESTABLISHED
from tests.trees.treebank_files import (
    CATS,
    DOGS,
    MICE,
    Part,
    assert_answer_or_error,
    labelled_parts,
    tree_of,
    write,
)

# Anything


Edits = list[tuple[int, str, bytes]]
BITS = [*map(str.encode, ["(", ")", " ", "\n", "(\n", "\n(", "()", " word ", "(S ", "\0", "\r", "*x*", "\ufeff"])]
BITS += [b"\xe9", b"\xff\xfe"]
EDIT = st.tuples(st.integers(0, 10_000), st.sampled_from(["delete", "double", "insert", "cut"]), st.sampled_from(BITS))
EDITS = st.lists(EDIT, min_size=1, max_size=4)


def edited(content: bytes, edits: Edits) -> bytes:
    for place, edit, bit in edits:
        at = place % (len(content) + 1)
        if edit == "delete":
            content = content[:at] + content[at + 1 :]
        elif edit == "double":
            content = content[: at + 1] + content[at:]
        elif edit == "insert":
            content = content[:at] + bit + content[at:]
        else:
            content = content[:at] + content[at + place % 40 :]
    return content


LAYOUTS: list[Callable[[str], str]] = [
    lambda tree: tree + "\n",
    lambda tree: f"( {tree} )\n".replace(" (", "\n   ("),
    lambda tree: tree + " ",
    lambda tree: tree.replace(" (", "\n(") + "\n\n",
]


@given(
    st.lists(labelled_parts() | labelled_parts(top=st.none()), min_size=1, max_size=5),
    st.sampled_from(LAYOUTS),
    EDITS,
    st.sampled_from([None, True, False]),
)
def test_a_damaged_file_gives_an_answer_or_an_input_error(
    drawn: Path,
    parts: list[Part],
    layout: Callable[[str], str],
    edits: Edits,
    labelled: bool | None,
) -> None:
    text = "".join(layout(tree_of(part).brackets()) for part in parts)
    write(drawn, edited(text.encode(), edits))
    assert_answer_or_error(drawn, labelled)


@given(st.binary(max_size=80) | st.text("()ab \n", max_size=80).map(str.encode), st.sampled_from([None, True, False]))
@example(b"(\n)", None)
@example(b"((\n(a)))", False)
@example(b"\xef\xbb\xbf", None)
def test_any_bytes_give_an_answer_or_an_input_error(drawn: Path, content: bytes, labelled: bool | None) -> None:
    write(drawn, content)
    assert_answer_or_error(drawn, labelled)


GOOD_LINES = st.sampled_from(
    [
        line.encode()
        for line in [
            DOGS,
            CATS,
            f"(S {MICE})",
            f"(S {CATS} (CC and) {DOGS})",
            "(S (UH Já))",
            "(S (S (S (VB 行く))) (. 。))",
        ]
    ]
)


@given(st.lists(GOOD_LINES, min_size=1, max_size=6), st.integers(0, 5), EDITS)
def test_one_damaged_line_costs_no_other(drawn: Path, lines: list[bytes], at: int, edits: Edits) -> None:
    at %= len(lines)
    damaged = edited(lines[at], edits).replace(b"\n", b" ")
    write(drawn, b"\n".join([*lines[:at], damaged, *lines[at + 1 :]]))
    found, _ = assert_answer_or_error(drawn, True)
    kept = {placed.place.rpartition(":")[2]: placed.tree.brackets().encode() for placed in found}
    assert [kept[str(i + 1)] for i in range(len(lines)) if i != at] == lines[:at] + lines[at + 1 :]


@given(st.lists(GOOD_LINES, min_size=2, max_size=6), st.lists(st.tuples(GOOD_LINES, EDITS), min_size=5, max_size=5))
def test_damage_in_many_lines_costs_no_others(
    drawn: Path, lines: list[bytes], damaged: list[tuple[bytes, Edits]]
) -> None:
    between = [edited(line, edits).replace(b"\n", b" ") for line, edits in damaged[: len(lines) - 1]]
    for line in between:  # what opens brackets only could be the beginning of a tree over several lines
        tokens = TOKEN.findall(line.decode(errors="replace"))
        assume(any("(" not in pair for pair in pairwise(tokens)))
    content = [line for pair in zip(lines, [*between, b""], strict=True) for line in pair]
    write(drawn, b"\n".join([DOGS.encode()] * ESTABLISHED + content))
    found, _ = assert_answer_or_error(drawn, True)
    kept = {placed.place.rpartition(":")[2]: placed.tree.brackets().encode() for placed in found}
    assert [kept[str(2 * i + 1 + ESTABLISHED)] for i in range(len(lines))] == lines
