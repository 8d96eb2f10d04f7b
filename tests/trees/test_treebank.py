import gzip
import io
import lzma
import os
import sys
import textwrap
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from prpn.errors import InputError
from prpn.trees import Tree
from prpn.trees.brackets import TOKEN, Constituent
from prpn.trees.treebank import ESTABLISHED, SAMPLE, PlacedTree, files_of, look_labelled, read_line, read_treebank
from tests.reference import scores as reference
from tests.reference.trees import binary_trees, brackets
from tests.trees.test_tree import WORDS, deep_brackets, trees

MASC = Path(__file__).parents[2] / "src" / "prpn" / "corpora" / "masc" / "masc.trees"
DOGS = "(S (NP (NNS Dogs)) (VP (VBP bark)) (. .))"
CATS = "(S (NP (NNS Cats)) (VP (VBP sleep) (ADVP (RB soundly))))"
MICE = "(NP (NP (NNS Mice)) (CC and) (NP (NNS men)))"
WORDS = WORDS.filter(lambda word: "\0" not in word)
LABELS = st.sampled_from(["S", "NP-SBJ", "-LRB-", "no_et_þgf", "a", ".", "``", "\u00a0=2", "日"])
Part = tuple[str | None, "str | list[Part]"]


def tree_of(part: Part) -> Tree:
    """(label, word) or (label, [part, …]) as a tree."""
    words: list[str] = []
    constituents: list[Constituent] = []

    def visit(label: str | None, inside: str | list[Part]) -> None:
        index = len(constituents)
        constituents.append(Constituent(len(words), 0, label))
        if isinstance(inside, str):
            words.append(inside)
        else:
            for child in inside:
                visit(*child)
        constituents[index] = constituents[index]._replace(end=len(words))

    visit(*part)
    return Tree(tuple(words), tuple(constituents))


def labelled_parts(
    labels: st.SearchStrategy[str] = LABELS,
    tags: st.SearchStrategy[str] = LABELS,
    words: st.SearchStrategy[str] = WORDS,
    top: st.SearchStrategy[str | None] | None = None,
) -> st.SearchStrategy[Part]:
    """Trees in the labelled form, each word alone with its tag; `top` is the label around everything."""
    leaves = st.tuples(tags, words)
    inner = st.recursive(leaves, lambda part: st.tuples(labels, st.lists(part, min_size=1, max_size=3)), max_leaves=8)
    return inner if top is None else st.tuples(top, st.lists(inner, min_size=1, max_size=3))


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(path: Path, labelled: bool | None = None) -> list[str]:
    return [placed.tree.brackets() for placed in read_treebank([path], labelled=labelled)]


def read_one(path: Path) -> Tree:
    (placed,) = read_treebank([path])
    return placed.tree


def read_skipping(path: Path, labelled: bool | None = None) -> tuple[list[PlacedTree], list[InputError]]:
    broken: list[InputError] = []
    return list(read_treebank([path], broken.append, labelled)), broken


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for what hypothesis draws."""
    return tmp_path_factory.mktemp("drawn") / "drawn.trees"


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
    write(folder / "broken.gz", b"(S (NN no))")
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
        ("cut.gz", gzip.compress(DOGS.encode() * 9)[:-9], "cut.gz: broken .gz file"),
        ("cut.xz", lzma.compress(DOGS.encode() * 9)[:-9], "cut.xz: broken .xz file"),
        ("no.gz", DOGS.encode(), "no.gz: broken .gz file"),
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


# Size


@pytest.mark.parametrize(("side", "labelled"), [("left", False), ("left", True), ("right", False)])
def test_deep_trees(tmp_path: Path, side: str, labelled: bool) -> None:
    text = deep_brackets(50_000, side)
    if labelled:
        text = TOKEN.sub(lambda token: {"(": "(X ", ")": ")"}.get(token[0], f"(N {token[0]})"), text)
    begun = time.process_time()
    tree = read_one(write(tmp_path / "a", text))
    assert len(tree) == 100_000
    assert tree.depth() == 50_000 + labelled
    assert (tree.constituents[0].label == "X") == labelled
    assert time.process_time() - begun < 10


def test_a_flat_tree_of_a_hundred_thousand_words(tmp_path: Path) -> None:
    text = "(S\n" + "(NN word)\n" * 100_000 + ")"
    begun = time.process_time()
    assert len(read_one(write(tmp_path / "a", text))) == 100_000
    assert time.process_time() - begun < 10


LARGE_DAMAGE = {
    "open": "(" * 100_000,
    "closed": ")" * 100_000,
    "deep, one missing": "(S " * 20_000 + "(NN a)" + ")" * 19_999,
    "deep, one too many": "(S " * 20_000 + "(NN a)" + ")" * 20_001,
    "open, on many lines": "(S\n" * 20_000,
    "each lacks its last": f"{DOGS[:-1]}\n" * 20_000,
    "all but one lack their last": f"{DOGS}\n" + f"{DOGS[:-1]}\n" * 5_000,
    "first too few, then too many": f"{DOGS[:-1]}\n" * 2_000 + f"{DOGS})\n" * 2_001,
    "too few and too many in turns": f"{DOGS}\n" + f"{DOGS[:-1]}\n{DOGS})\n" * 2_000,
    "steps": "(S (NN a) \n" * 5_000 + ")\n" * 5_000 + f"\n{DOGS}\n)",
    "words": "word " * 100_000,
    "lines of words": "word\n" * 20_000,
    "flat and open": "(S " + "(NN a) " * 20_000,
    "nothing in brackets": "(" + "() " * 50_000 + ")",
    "one tag for all": "(S (NN " + "word " * 100_000 + "))",
    "NUL lines": "\0\n" * 20_000,
    "NUL lines in a tree": "(S\n" + "\0\n" * 20_000 + ")",
    "deep around trees": "( " * 50_000 + "\n" + "(S (NN a))\n" * 5_000 + ")" * 50_001,
}


@pytest.mark.parametrize("name", LARGE_DAMAGE)
def test_large_damage_is_found_in_seconds(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "a", LARGE_DAMAGE[name])
    begun = time.process_time()
    outcome(path, labelled=True)
    assert time.process_time() - begun < 10


def test_each_of_many_broken_trees_is_counted(tmp_path: Path) -> None:
    lines = [DOGS[:-1] if i % 2 else DOGS for i in range(2_000)]
    found, broken = read_skipping(write(tmp_path / "a", "\n".join(lines)))
    assert len(found) == len(broken) == 1_000
    lines[0] = DOGS[:-1]
    found, broken = read_skipping(write(tmp_path / "a", "\n".join(lines)))
    assert (len(found), len(broken)) == (999, 1_001)


def test_work_grows_with_the_text_only(tmp_path: Path) -> None:
    def steps(text: str) -> int:
        path, count, before = write(tmp_path / "a", text), 0, sys.gettrace()

        def trace(frame: object, event: str, argument: object) -> Callable[..., object]:
            nonlocal count
            count += 1
            return trace

        sys.settrace(trace)
        try:
            read_skipping(path)
        finally:
            sys.settrace(before)
        return count

    for line in [DOGS, DOGS[:-1], DOGS + ")", f"(S {DOGS}\n{DOGS}"]:
        small, large = (steps(f"{DOGS}\n" + f"{line}\n" * size) for size in (100, 1_000))
        assert large < 11 * small


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


def outcome(path: Path, labelled: bool | None) -> tuple[list[PlacedTree], list[str]]:
    """Trees and errors, after it was made sure that an answer without skipping is the same."""
    try:
        found, errors = read_skipping(path, labelled)
        broken = [str(error) for error in errors]
    except InputError as error:
        assert "no tree in it" in str(error)  # noqa: PT017
        found, broken = [], [str(error)]
        errors = []
    if broken:
        with pytest.raises(InputError) as raised:
            list(read_treebank([path], labelled=labelled))
        assert errors == [] or str(raised.value) == broken[0]
    else:
        assert list(read_treebank([path], labelled=labelled)) == found
    return found, broken


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
    outcome(drawn, labelled)


@given(st.binary(max_size=80) | st.text("()ab \n", max_size=80).map(str.encode), st.sampled_from([None, True, False]))
@example(b"(\n)", None)
@example(b"((\n(a)))", False)
@example(b"\xef\xbb\xbf", None)
def test_any_bytes_give_an_answer_or_an_input_error(drawn: Path, content: bytes, labelled: bool | None) -> None:
    write(drawn, content)
    outcome(drawn, labelled)


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
    found, _ = outcome(drawn, True)
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
    found, _ = outcome(drawn, True)
    kept = {placed.place.rpartition(":")[2]: placed.tree.brackets().encode() for placed in found}
    assert [kept[str(2 * i + 1 + ESTABLISHED)] for i in range(len(lines))] == lines
