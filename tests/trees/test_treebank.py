"""Reading sound treebanks: layouts, folders, labelled or not, round trips."""

import gzip
import io
import lzma
import os
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from prpn.errors import InputError
from prpn.trees import Tree
from prpn.trees.brackets import TOKEN, Constituent
from prpn.trees.treebank import SAMPLE, files_of, look_labelled, read_line, read_treebank
from tests.reference import scores as reference
from tests.reference.trees import binary_trees, brackets
from tests.trees.test_tree import trees
from tests.trees.treebank_files import (
    CATS,
    DOGS,
    LABELS,
    MASC,
    MICE,
    Part,
    labelled_parts,
    read,
    read_one,
    read_skipping,
    tree_of,
    write,
)

# Layouts


def test_the_layout_of_the_penn_treebank(tmp_path: Path) -> None:
    notice = "*x*x*x*x*x*x*x*\n*x*  Copyright (C) of somebody )  *x*\n*x*x*x*x*x*x*x*\n\n"
    dog = "\n( (S \n    (NP-SBJ (DT The) \n\t(NN dog) )\n    (VP (VBZ barks) )\n    (. .) ))\n"
    found = list(read_treebank([write(tmp_path / "a.mrg", notice + dog + "\n\n( (FRAG (UH No) ))\n")]))
    assert [placed.place for placed in found] == [f"{tmp_path}/a.mrg:6", f"{tmp_path}/a.mrg:13"]
    assert found[0].tree.brackets() == "((S (NP-SBJ (DT The) (NN dog)) (VP (VBZ barks)) (. .)))"
    assert found[0].tree.words == ("The", "dog", "barks", ".")
    assert found[0].tree.constituents[:3] == ((0, 4, None), (0, 4, "S"), (0, 2, "NP-SBJ"))
    assert found[0].tree.tags() == ["DT", "NN", "VBZ", "."]
    assert found[1].tree.brackets() == "((FRAG (UH No)))"


@pytest.mark.parametrize(
    "text",
    [
        f"{DOGS}\n{CATS}\n{MICE}\n",
        f"{DOGS}\r\n{CATS}\r\n{MICE}\r\n",
        f"\ufeff{DOGS}\n{CATS}\n{MICE}",
        f"{DOGS} {CATS}{MICE}",
        f"  {DOGS}\n\t{CATS}\n {MICE}\n",
        f"\n\n \n{DOGS}\n\t\n\r\n{CATS}\n\n{MICE}\n\n",
        "\n".join([DOGS, CATS, MICE]).replace(" ", "\n"),
        "\n".join([DOGS, CATS, MICE]).replace(" ", "\n    "),
        "\n".join([DOGS, CATS, MICE]).replace(" ", " \v\f "),
        " ".join([DOGS, CATS, MICE]).replace(" (", "\n("),
        " ".join([DOGS, CATS, MICE]).replace(")", " )\n"),
        f"{DOGS}\n{CATS[:19]}\n{CATS[19:]}\n{MICE}\n",
        f"{DOGS}{CATS[:19]}\n{CATS[19:]}{MICE}\n",
        f"{DOGS}\n(S\n{CATS[3:]}\n{MICE}",
    ],
)
def test_line_ends_and_spaces_do_not_matter(tmp_path: Path, text: str) -> None:
    assert read(write(tmp_path / "a.trees", text)) == [DOGS, CATS, MICE]


def test_a_tree_with_brackets_in_the_first_column_is_one_tree(tmp_path: Path) -> None:
    dogs = "(S\n(NP (NNS Dogs))\n(VP (VBP bark))\n(. .))"
    cats = "(S (NP\n(NNS Cats)) (VP (VBP sleep)\n(ADVP (RB soundly))))"
    assert read(write(tmp_path / "a.trees", f"{MICE}\n{dogs}\n{cats}")) == [MICE, DOGS, CATS]
    assert read(write(tmp_path / "a.trees", f"{MICE}\n{cats}\n{dogs}")) == [MICE, CATS, DOGS]


def test_a_file_without_indentation_is_read_as_it_stands(tmp_path: Path) -> None:
    says = "(S (NP (PRP He)) (VP (VBZ says) (S (NP (NNS dogs)) (VP (VBP bark)))))"
    for wanted in ([says], [DOGS, CATS, says], [says, MICE, says]):
        lines = [tree.replace(" (VP", "\n(VP").replace(" (S ", "\n(S ") for tree in wanted]
        assert read(write(tmp_path / "a.trees", "\n".join(lines))) == wanted


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120])
def test_wrapped_lines(tmp_path: Path, width: int) -> None:
    lines = MASC.read_text().splitlines()[:150]
    wrapped = [textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in lines]
    assert read(write(tmp_path / "a.trees", "\n".join(wrapped))) == lines


def test_each_tree_knows_its_first_line(tmp_path: Path) -> None:
    text = f"\n{DOGS} {CATS}\n\n (S\n (NN a)\n (NN b)) {MICE}\n"
    found = list(read_treebank([write(tmp_path / "a.trees", text)]))
    assert [placed.place.rpartition(":")[2] for placed in found] == ["2", "2", "4", "6"]


@pytest.mark.parametrize("wrapper", ["", "TOP", "ROOT", "S1"])
def test_wrappers_stay(tmp_path: Path, wrapper: str) -> None:
    path = write(tmp_path / "a.trees", f"({wrapper} {DOGS})\n({wrapper} {CATS} )\n")
    assert [placed.tree.constituents[0].label for placed in read_treebank([path])] == [wrapper or None] * 2
    assert [placed.tree.constituents[1] for placed in read_treebank([path])] == [(0, 3, "S")] * 2


def test_escaped_brackets_unary_chains_and_odd_tokens(tmp_path: Path) -> None:
    text = "(S (-LRB- -LRB-) (NP (NP (NX (NN f-LRB-x-RRB-)))) (-RRB- -RRB-) (SYM *x*) ($ $) (NN ▁) (`` ``))"
    tree = read_one(write(tmp_path / "a.trees", text))
    assert tree.words == ("(", "f(x)", ")", "*x*", "$", "▁", "``")
    assert tree.tags() == ["-LRB-", "NN", "-RRB-", "SYM", "$", "NN", "``"]
    assert [c.label for c in tree.constituents if c[:2] == (1, 2)] == ["NP", "NP", "NX", "NN"]
    assert tree.brackets() == text


@pytest.mark.parametrize(
    ("text", "words", "tags"),
    [
        (
            "(S0 (S-MAIN (IP (NP-SUBJ (pfn_et_nf_p1 ég)) (VP (so_0_et_þt sá)) (NP-OBJ (no_et_þf_kk snjó)) (grm .))))",
            "ég sá snjó .",
            "pfn_et_nf_p1 so_0_et_þt no_et_þf_kk grm",
        ),
        (
            "(IP-MAT (PP-SBJ (NP (N 雨)) (P-ROLE が)) (VB 降っ) (AXD た) (PU 。))",
            "雨 が 降っ た 。",
            "N P-ROLE VB AXD PU",
        ),
        (
            "( (IP-MAT (NP-SBJ (N-N Kavi)) (VBPI kemur) (PP (P á) (NP (N-A fjøll))) (. ;)) (ID X,.1))",
            "Kavi kemur á fjøll ; X,.1",
            "N-N VBPI P N-A . ID",
        ),
    ],
)
def test_other_languages_and_tag_sets(tmp_path: Path, text: str, words: str, tags: str) -> None:
    tree = read_one(write(tmp_path / "a.trees", text))
    assert " ".join(tree.words) == words
    assert tree.tags() == tags.split()


def test_only_ascii_white_space_separates(tmp_path: Path) -> None:
    text = "(S (NUM 1\u00a0000) (PU \u3000) (N a\u2028b\u0085c))"
    tree = read_one(write(tmp_path / "a.trees", text))
    assert tree.words == ("1\u00a0000", "\u3000", "a\u2028b\u0085c")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(f"\n{DOGS}\n{MICE}".encode())))
    found = list(read_treebank(["-"]))
    assert [placed.place for placed in found] == ["standard input:2", "standard input:3"]


# Folders


def test_a_folder_stands_for_its_files_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "treebank"
    for inner in ["00", "01/deep/er", ".git", "01/.cache"]:
        (folder / inner).mkdir(parents=True)
    write(folder / "01" / "b.mrg.gz", gzip.compress(f"\n( {CATS} )".encode()))
    write(folder / "01" / "deep" / "er" / "a.mrg", f"*x*x*\n*x* (C) *x*\n\n\t( {MICE} )\n")
    write(folder / "00" / "z.xz", lzma.compress(f"\ufeff( {DOGS} )".encode()))
    write(folder / "00" / "latin.mrg", "")
    write(folder / "README", "Trees (about dogs).\n(S (NN no))\n")
    write(folder / "picture.png", b"\x89PNG\r\n\x1a\n\0\0(S (NN no))")
    write(folder / "zeros", b"\0" * 5000)
    write(folder / "wide.mrg", DOGS.encode("utf-16"))
    write(folder / "broken.gz", gzip.compress(b"(S (NN no))")[:-9])
    write(folder / ".hidden.mrg", f"( {DOGS} )")
    write(folder / ".git" / "objects.mrg", f"( {DOGS} )")
    write(folder / "01" / ".cache" / "b.mrg", f"( {DOGS} )")
    (folder / "dangling.mrg").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "pipe.mrg")
    names = ["00/z.xz", "01/b.mrg.gz", "01/deep/er/a.mrg"]
    assert files_of([folder]) == files_of([f"{folder}/"]) == [folder / name for name in names]
    found = list(read_treebank([folder]))
    assert [placed.place for placed in found] == [
        f"{folder}/{name}:{line}" for name, line in zip(names, [1, 2, 4], strict=True)
    ]
    assert [placed.tree.brackets() for placed in found] == [f"({tree})" for tree in [DOGS, CATS, MICE]]


def test_a_file_whose_first_line_is_not_utf8_is_not_lost(tmp_path: Path) -> None:
    write(tmp_path / "a.mrg", DOGS)
    write(tmp_path / "b.mrg", b"(S (NN caf\xe9))\n" + CATS.encode())
    with pytest.raises(InputError, match=r"b\.mrg:1: not UTF-8"):
        list(read_treebank([tmp_path]))
    found, broken = read_skipping(tmp_path)
    assert [placed.tree.brackets() for placed in found] == [DOGS, CATS]
    assert len(broken) == 1


def test_files_and_folders_come_in_the_order_given(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    one, two = write(tmp_path / "one", DOGS), write(tmp_path / "b" / "two", MICE)
    assert files_of([one, str(tmp_path / "b"), "-", one]) == [one, two, "-", one]
    assert files_of([tmp_path]) == [two, one]
    assert files_of([]) == []


def test_a_folder_with_a_dot_in_its_own_name(tmp_path: Path) -> None:
    (tmp_path / ".mine").mkdir()
    path = write(tmp_path / ".mine" / "a", DOGS)
    assert files_of([tmp_path / ".mine"]) == [path]


def test_only_the_beginning_of_a_file_decides(tmp_path: Path) -> None:
    write(tmp_path / "a.bin", b"\1" * 40_000_000)  # one line without end
    path = write(tmp_path / "b.trees", " " * 500_000 + DOGS)
    write(tmp_path / "c.blank", " " * 3_000_000)
    begun = time.process_time()
    assert files_of([tmp_path]) == [path]
    assert time.process_time() - begun < 3


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("nothing", None, "nothing: no such file"),
        ("x" * 300, None, "x: cannot be read (File name too long)"),
        ("empty", b"", "empty: no tree in it; a tree looks like"),
        ("blank", b"\n \n", "blank: no tree in it; a tree looks like"),
        ("notice", b"*x*x*\n*x* (C) *x*\n", "notice: no tree in it; a tree looks like"),
        ("cut.gz", gzip.compress(DOGS.encode() * 9)[:-9], "cut.gz: broken gzip data"),
        ("cut.xz", lzma.compress(DOGS.encode() * 9)[:-9], "cut.xz: broken xz data"),
        ("wide", DOGS.encode("utf-16"), "wide:1: this is UTF-16, not UTF-8; convert it"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        write(tmp_path / name, content)
    with pytest.raises(InputError) as error:
        list(read_treebank([tmp_path / name]))
    assert message in str(error.value)
    assert str(error.value).startswith(f"{tmp_path}/{name}:")


def test_a_folder_without_trees(tmp_path: Path) -> None:
    write(tmp_path / "README", "nothing here")
    with pytest.raises(InputError) as error:
        list(read_treebank([tmp_path]))
    assert str(error.value) == f"{tmp_path}: no file in this folder begins with a bracket; name a folder with trees"


# Labelled or not


@pytest.mark.parametrize(
    ("labelled", "lines"),
    [
        (True, [DOGS]),
        (True, [f"( {DOGS} )"]),
        (True, [f"(TOP {DOGS})"]),
        (True, ["(FRAG (UH Yes))", "(NP (NNP May))", "( (NN word) )", "(VP (VB go))", "(. .)", "(-LRB- -LRB-)"]),
        (True, ["(FRAG (NP (XY word)))", "(A (B c) (D e))"]),
        (True, ["(a (b c) (d e))"]),
        (True, ["( (A (B c) (D e)) (ID 1))"]),
        (True, [DOGS, CATS, "(the (old (man)))", "((the old) man)"]),
        (True, [DOGS, DOGS[:-1], CATS, "((a b)"]),
        (False, ["(the (old man))"]),
        (False, ["((the old) man)"]),
        (False, ["((the old) (man sat))", "(he (sat down))"]),
        (False, ["((the (old man)) (sat (down there)))"]),
        (False, ["(word)"]),
        (False, ["()", "(a b)", "()"]),
        (False, ["(a (b c))", "(word)", "(d (e (f (g h))))"]),
        (False, ["(he (said (yes (. ''))))"]),
        (False, ["(FRAG (XY word))"]),
        (False, ["((A b))", "((the old) (man sat))", "((C d))"]),
        (False, [DOGS, "((the old) man)", "(a ((b c) d))"]),
    ],
)
def test_the_majority_decides_whether_trees_are_labelled(tmp_path: Path, labelled: bool, lines: list[str]) -> None:
    path = write(tmp_path / "a.trees", "\n".join(lines))
    found, _ = read_skipping(path)
    last = [placed.tree.constituents[-1] for placed in found if len(placed.tree)]
    assert {constituent.label is not None for constituent in last} == {labelled}


def test_the_first_trees_decide_and_broken_ones_do_not(tmp_path: Path) -> None:
    stray = "no tree\n" * (SAMPLE + 1)
    path = write(tmp_path / "a.trees", stray + "(a (b c))\n" * SAMPLE + f"{DOGS}\n" * (SAMPLE + 1))
    found, broken = read_skipping(path)
    assert len(broken) == SAMPLE + 1
    assert len(found) == 2 * SAMPLE + 1
    assert len(found[0].tree) == 3
    assert {label for placed in found for _, _, label in placed.tree.constituents} == {None}


def test_all_files_are_decided_together(tmp_path: Path) -> None:
    one, two = write(tmp_path / "1", "(XX (YY word))"), write(tmp_path / "2", f"{DOGS}\n{CATS}")
    assert [len(placed.tree) for placed in read_treebank([one, two])] == [1, 3, 3]


def test_the_decision_can_be_overridden(tmp_path: Path) -> None:
    path = write(tmp_path / "a.trees", "(the (old man))\n(XX (YY word))\n")
    assert [placed.tree.words for placed in read_treebank([path], labelled=True)] == [("man",), ("word",)]
    assert [len(placed.tree) for placed in read_treebank([path], labelled=False)] == [3, 3]
    path = write(tmp_path / "b.trees", DOGS)
    assert read(path, labelled=False) == [DOGS]
    assert len(next(read_treebank([path], labelled=False)).tree) == 9


@pytest.mark.parametrize("size", range(1, 7))
def test_no_binary_tree_without_labels_speaks_for_labels(size: int) -> None:
    words = ["the", "old", "man", "sat", "down", "there"][:size]
    for tree in binary_trees(words):
        assert not look_labelled([TOKEN.findall(brackets(tree))])


@given(st.lists(labelled_parts(top=st.none() | LABELS), min_size=1, max_size=4))
def test_trees_in_the_labelled_form_speak_for_labels(parts: list[Part]) -> None:
    drawn_trees = [tree_of(part) for part in parts]
    for tree, (label, inside) in zip(drawn_trees, parts, strict=True):
        assume(len(tree) > 1)
        assume(label is not None or len(tree) > len(inside))
    assert look_labelled([TOKEN.findall(tree.brackets()) for tree in drawn_trees])


# Round trips


@given(st.lists(labelled_parts() | labelled_parts(top=st.none()), min_size=1, max_size=4), st.sampled_from("\n\t\r "))
def test_labelled_trees_are_read_as_they_are_written(drawn: Path, parts: list[Part], separator: str) -> None:
    wanted = [tree_of(part) for part in parts]
    write(drawn, separator.join(tree.brackets() for tree in wanted))
    assert [placed.tree for placed in read_treebank([drawn], labelled=True)] == wanted
    write(drawn, separator.join(tree.brackets() for tree in wanted).replace(" ", "\n  "))
    assert [placed.tree for placed in read_treebank([drawn], labelled=True)] == wanted
    assert [read_line(tree.brackets(), True, "here") for tree in wanted] == wanted


@given(st.lists(trees().filter(lambda tree: "\0" not in "".join(tree.words)), min_size=1, max_size=4))
def test_trees_without_labels_are_read_as_they_are_written(drawn: Path, wanted: list[Tree]) -> None:
    write(drawn, "\n".join(tree.brackets() for tree in wanted))
    assert [placed.tree for placed in read_treebank([drawn], labelled=False)] == wanted


@pytest.mark.parametrize(
    "lines",
    [
        ["(the (old (man (sat down))))", "(it (is (a dog)))", "(yes)", "(so what)"],
        ["((((the old) man) sat) down)", "(yes)", "()", "()"],
        ["()"],
        ["(yes)"],
        ["((the (old man)) ((sat down) (. '')))", "(f-LRB-x-RRB- is)"],
    ],
)
def test_files_as_parse_writes_them(tmp_path: Path, lines: list[str]) -> None:
    assert read(write(tmp_path / "a.trees", "\n\n".join(lines) + "\n")) == lines


def test_brackets_in_labels_are_escaped(tmp_path: Path) -> None:
    tree = Tree(("(", "a"), (Constituent(0, 2, "S T"), Constituent(0, 1, "("), Constituent(1, 2, "f(x)")))
    assert tree.brackets() == "(S▁T (-LRB- -LRB-) (f-LRB-x-RRB- a))"
    assert read_line(tree.brackets(), True, "here").words == tree.words


@given(st.lists(labelled_parts(words=st.text("aá日-.*", min_size=1, max_size=4)), min_size=1, max_size=3))
def test_a_slow_reader_agrees(drawn: Path, parts: list[Part]) -> None:
    text = "\n".join(tree_of(part).brackets() for part in parts)
    write(drawn, text)
    found = [placed.tree for placed in read_treebank([drawn], labelled=True)]
    slow = list(reference.read_all(text))
    assert [reference.size(tree) for tree in slow] == list(map(len, found))
    assert [sorted(reference.bottom_up(tree)) for tree in slow] == [sorted(tree.spans()) for tree in found]
