"""Reading damaged treebanks: every kind of damage is named, and costs no more than it must."""

from collections.abc import Callable
from pathlib import Path

import pytest

from prpn.errors import InputError
from prpn.trees.treebank import ESTABLISHED, read_treebank
from tests.trees.treebank_files import CATS, DOGS, MICE, read_skipping, write

# Damage


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (b"(S (NP (NN a)) (VP (VB b))", "the bracket opened here is never closed"),
        (b"(S (NP (NN a) (VP (VB b)))", "the bracket opened here is never closed"),
        (b"(S (NP (NN a)) (VP (VB", "the bracket opened here is never closed"),
        (b"(", "the bracket opened here is never closed"),
        (b"(S (NP (NN a)) (VP (VB b))))", "a bracket is closed that was never opened; write each tree in brackets"),
        (b"(S (NP (NN a))) (VP (VB b)))", "a bracket is closed that was never opened"),
        (b")", "a bracket is closed that was never opened"),
        (b"))))((((", "a bracket is closed that was never opened"),
        (b"S (NP (NN a)) (VP (VB b)))", "'S' is in no tree; write each tree in brackets"),
        (b"some words", "'some' is in no tree"),
        (b"(S (NP (NN a)) (VP (VB b))) more", "'more' is in no tree"),
        (b"see (S (NP (NN a)) (VP (VB b)))", "'see' is in no tree"),
        (b"a smile :-(", "'a' is in no tree"),
        (b"(S (NP (NN a)) ()", "the bracket opened here has no words; remove it"),
        (b"(S (NP (NN a)) ())", "the bracket opened here has no words; remove it"),
        (b"(S (NP) (VP (VB b)))", "the bracket opened here has no words"),
        (b"(S (NP (NN)) (VP (VB b)))", "the bracket opened here has no words"),
        (b"(S)", "the bracket opened here has no words"),
        (b"(S (NP (NN a a)) (VP (VB b)))", "'a' is not alone with its tag; write (TAG word)"),
        (b"(S (NP (NN a)) b)", "'b' is not alone with its tag"),
        (b"(S b (NP (NN a)))", "'b' is not alone with its tag"),
        (b"(S (NP (NN caf\xe9)) (VP (VB b)))", "not UTF-8 (byte 0xe9); convert it"),
        (b"\xff\xfd\x80", "not UTF-8 (byte 0xff)"),
        (b"(S (NP (NN a\0)) (VP (VB b)))", "not text (it holds a NUL byte)"),
        (b"\0\0", "not text (it holds a NUL byte)"),
        (b"(S (NN \xe9)", "not UTF-8 (byte 0xe9)"),
    ],
)
@pytest.mark.parametrize("before", [0, 1, 5])
def test_damage_in_one_line_costs_one_tree(tmp_path: Path, damaged: bytes, message: str, before: int) -> None:
    good = [DOGS, MICE, CATS, f"({DOGS})", MICE, DOGS]
    lines = [*map(str.encode, good[:before]), damaged, *map(str.encode, good[before:])]
    for end in [b"\n", b"\r\n", b"\n\n"]:
        path = write(tmp_path / "a.trees", end.join(lines))
        expected = f"{path}:{1 + before * end.count(10)}: {message}"
        with pytest.raises(InputError) as first:
            list(read_treebank([path]))
        assert str(first.value).startswith(expected)
        found, broken = read_skipping(path)
        assert [placed.tree.brackets() for placed in found] == good
        assert [str(error) for error in broken] == [str(first.value)]


@pytest.mark.parametrize(
    ("line", "damage", "at", "message"),
    [
        (2, lambda text: text[:-1], 1, "the bracket opened here is never closed"),
        (4, lambda text: text + ")", 4, "a bracket is closed that was never opened"),
        (2, lambda text: text + ")", 4, "a bracket is closed that was never opened"),
        (3, lambda text: text + " (VB", 1, "the bracket opened here is never closed"),
        (3, lambda text: text + " more", 3, "'more' is not alone with its tag"),
        (3, lambda text: text + " ( )", 3, "the bracket opened here has no words"),
        (3, lambda text: text.replace("VB", ""), 3, "the bracket opened here has no words"),
        (3, lambda text: text.replace("b", "\xe9"), 3, "not UTF-8"),
        (3, lambda text: text.replace("(VP", "\xe9"), 3, "not UTF-8"),
        (3, lambda text: text.replace("b", "\0"), 3, "not text"),
        (1, lambda text: text + "\xe9", 1, "not UTF-8"),
        (1, lambda text: "stray" + text, 1, "'stray' is in no tree"),
        (5, lambda text: text + "stray", 5, "'stray' is in no tree"),
    ],
)
def test_damage_in_a_tree_of_many_lines_is_found_in_its_line(
    tmp_path: Path, line: int, damage: Callable[[str], str], at: int, message: str
) -> None:
    lines = ["( (S ", "    (NP-SBJ (NN a) )", "    (VP (VB b) )", "    (. .) ))", ""]
    good = "\n".join([*lines, ""])
    lines[line - 1] = damage(lines[line - 1])
    path = write(tmp_path / "a.mrg", (good * 3 + "\n".join([*lines, ""]) + good * 2).encode("latin1"))
    with pytest.raises(InputError) as first:
        list(read_treebank([path]))
    assert str(first.value).startswith(f"{path}:{15 + at}: {message}")
    found, broken = read_skipping(path)
    kept = [placed for placed in found if not 15 < int(placed.place.rpartition(":")[2]) <= 20]
    assert [placed.tree.brackets() for placed in kept] == ["((S (NP-SBJ (NN a)) (VP (VB b)) (. .)))"] * 5
    assert len(kept) == len(found) or line == 5  # a tree that is whole, and text after it
    assert [str(error) for error in broken] == [str(first.value)]


def test_every_kind_of_damage_in_one_file(tmp_path: Path) -> None:
    lines = [DOGS.replace("Dogs", f"d{i}") for i in range(1000)]
    lines[100] = lines[100][:-1]
    lines[200] = lines[200][:-1]
    lines[300] += ")"
    lines[400] = "stray text (or not)"
    lines[500] = lines[500].replace("bark", "b\xe4rk")
    lines[600] = lines[600].replace("bark", "\0")
    lines[700] = lines[700].replace("(VP", "")
    lines[800] = lines[800].replace("bark))", "bark)))")
    lines[900] = lines[900].replace("bark", "")
    broken_lines = range(100, 1000, 100)
    found, broken = read_skipping(write(tmp_path / "a.trees", "\n".join(lines).encode("latin1")))
    assert [placed.tree.brackets() for placed in found] == [
        line for i, line in enumerate(lines) if i not in broken_lines
    ]
    assert [placed.place.rpartition(":")[2] for placed in found] == [
        str(i + 1) for i in range(1000) if i not in broken_lines
    ]
    assert [str(error).removeprefix(str(tmp_path)).split(":")[1] for error in broken] == [
        str(i + 1) for i in broken_lines
    ]


@pytest.mark.parametrize("first", [3, 4, 400])
def test_damage_of_opposite_kinds_does_not_cancel_out(tmp_path: Path, first: int) -> None:
    lines = [DOGS.replace("Dogs", f"d{i}") for i in range(1000)]
    lines[first] = lines[first][:-1]
    lines[700] += ")"
    found, broken = read_skipping(write(tmp_path / "a.trees", "\n".join(lines)))
    assert [placed.tree.brackets() for placed in found] == [
        line for line in lines if line not in (lines[first], lines[700])
    ]
    assert [str(error).split(":")[1] for error in broken] == [str(first + 1), "701"]


@pytest.mark.parametrize("place", range(DOGS.count(")") - 1))
@pytest.mark.parametrize("change", ["))", ""])
def test_a_bracket_too_many_or_too_few_in_an_indented_tree(tmp_path: Path, place: int, change: str) -> None:
    parts = DOGS.split(")")
    damaged = ")".join(parts[: place + 1]) + change + ")".join(parts[place + 1 :])
    trees = [tree.replace(" (", "\n    (") for tree in [CATS, DOGS, damaged, CATS, MICE]]
    found, broken = read_skipping(write(tmp_path / "a.trees", "\n".join(trees)))
    assert [placed.tree.brackets() for placed in found] == [CATS, DOGS, CATS, MICE]
    assert len(broken) == 1


def test_other_trees_on_a_broken_line(tmp_path: Path) -> None:
    lines = [f"{DOGS} {CATS}", f"{MICE} {DOGS[:-1]}", f"{CATS} {MICE}", f"{DOGS}) {CATS}", MICE, f"{DOGS} {CATS}"]
    found, broken = read_skipping(write(tmp_path / "a.trees", "\n".join([*[DOGS] * ESTABLISHED, *lines])))
    intact = [placed.tree.brackets() for placed in found][ESTABLISHED:]
    assert intact == [DOGS, CATS, MICE, CATS, MICE, MICE, DOGS, CATS]
    assert [str(error).split(":")[1] for error in broken] == ["5", "7"]


def test_errors_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.trees", f"{DOGS}\n(S (NN))\n{DOGS}\nstray\n(S (NN a b))\n\xe9".encode("latin1"))
    _, broken = read_skipping(path)
    assert [str(error).split(":")[1] for error in broken] == ["2", "4", "5", "6"]
    with pytest.raises(InputError, match=":2: the bracket opened here has no words"):
        list(read_treebank([path]))


def test_nothing_but_broken_trees(tmp_path: Path) -> None:
    path = write(tmp_path / "a.trees", f"{DOGS[:-1]}\n{DOGS[:-1]}\n")
    with pytest.raises(InputError, match="no tree in it"):
        read_skipping(path)


def test_damage_does_not_reach_the_next_file(tmp_path: Path) -> None:
    for name, text in [("a", DOGS), ("b", CATS[:-2]), ("c", MICE)]:
        write(tmp_path / name, text)
    found, broken = read_skipping(tmp_path)
    assert [placed.tree.brackets() for placed in found] == [DOGS, MICE]
    assert [str(error) for error in broken] == [f"{tmp_path}/b:1: the bracket opened here is never closed"]
