import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prpn.errors import ConfigError, InputError
from prpn.trees import Tree
from prpn.trees.brackets import Constituent
from prpn.trees.cleaning import Cleaning, Sentence, clean, is_empty, is_word, load_treebank, restrict, without_tags
from prpn.trees.penn_tags import PENN_TAGS, PENN_WORD_TAGS, category
from prpn.trees.treebank import SAMPLE, PlacedTree, read_line
from tests.reference import scores as reference
from tests.text.shared_data import shared
from tests.trees.test_tree import trees
from tests.trees.treebank_files import CATS, DOGS, MASC, Part, labelled_parts, tree_of, write

Rule = Literal["penn", "unicode", "all"]
SPOKEN = "( (S (NP-1 (PRP$ My) (NN cat)) (, ,) (VP (VBD ate) (NP ($ $) (CD 5) (-NONE- *U*)) (S (-NONE- *-1))) (. .)))"
NORWEGIAN = "(S (NP (pron Jeg)) (VP (v så) (NP (subst $) (num 5))) (SYM *) (NP *pro*) (clb .))"


def cleaned(text: str, rule: Rule) -> Sentence:
    return clean(PlacedTree("here", read_line(text, True, "here")), rule, lambda word: word)


def nested(tree: Tree) -> list:
    """[label, part, …] for a constituent, a string for a word; by the definition of pre-order."""
    parts = list(tree.constituents)

    def inside(start: int, end: int) -> Iterator[str | list]:
        while start < end:
            if parts and parts[0].start == start and parts[0].end <= end:
                part = parts.pop(0)
                yield [part.label, *inside(part.start, part.end)]
                start = part.end
            else:
                yield tree.words[start]
                start += 1

    return list(inside(0, len(tree)))


def flat(parts: list) -> Tree:
    """The tree of what `nested` gives."""
    words: list[str] = []
    constituents: list[Constituent] = []

    def visit(part: str | list) -> None:
        if isinstance(part, str):
            words.append(part)
            return
        index = len(constituents)
        constituents.append(Constituent(len(words), 0, part[0]))
        for child in part[1:]:
            visit(child)
        constituents[index] = constituents[index]._replace(end=len(words))

    for part in parts:
        visit(part)
    return Tree(tuple(words), tuple(constituents))


# Steps on any tree


ANY_TREE = trees() | labelled_parts().map(tree_of) | labelled_parts(top=st.none()).map(tree_of)


@given(ANY_TREE, st.data())
def test_restrict_takes_words_and_what_loses_all_its_words(tree: Tree, data: st.DataObject) -> None:
    keep = data.draw(st.lists(st.booleans(), min_size=len(tree), max_size=len(tree)))
    flags = iter(keep)

    def left(part: str | list) -> str | list | None:
        if isinstance(part, str):
            return part if next(flags) else None
        children = [child for child in map(left, part[1:]) if child is not None]
        return [part[0], *children] if children else None

    assert restrict(tree, keep) == flat([part for part in map(left, nested(tree)) if part is not None])


@given(ANY_TREE)
def test_without_tags_takes_one_bracket_off_each_word(tree: Tree) -> None:
    def untagged(part: str | list) -> str | list:
        if isinstance(part, str) or (len(part) == 2 and isinstance(part[1], str)):
            return part if isinstance(part, str) else part[1]
        return [part[0], *map(untagged, part[1:])]

    (top,) = nested(tree)
    assert without_tags(tree) == (tree if len(tree.constituents) == 1 else flat([untagged(top)]))


def test_examples_of_both() -> None:
    tree = read_line("(S (NP (NP (NN a)) (CC b)) (X (Y (Z c))))", True, "")
    assert without_tags(tree).brackets() == "(S (NP (NP a) b) (X (Y c)))"
    assert restrict(tree, [True, False, True]).brackets() == "(S (NP (NP (NN a))) (X (Y (Z c))))"
    assert restrict(tree, [False, True, False]).brackets() == "(S (NP (CC b)))"
    assert restrict(tree, [False] * 3) == Tree((), ())
    assert without_tags(Tree((), ())) == Tree((), ())
    assert without_tags(read_line("(NN a)", True, "")).brackets() == "(NN a)"
    assert without_tags(read_line("(S (NN a))", True, "")).brackets() == "(S a)"
    assert without_tags(read_line("((a) (b c))", False, "")).brackets() == "(a (b c))"


# Rules


@pytest.mark.parametrize(
    ("text", "rule", "brackets", "kept"),
    [
        (SPOKEN, "penn", "((S (NP-1 My cat) (VP ate (NP 5))))", "1101010"),
        (SPOKEN, "unicode", "((S (NP-1 My cat) (VP ate (NP 5))))", "1101010"),
        (SPOKEN, "all", "((S (NP-1 My cat) , (VP ate (NP $ 5)) .))", "1111111"),
        (NORWEGIAN, "unicode", "(S (NP Jeg) (VP så (NP 5)))", "110100"),
        (NORWEGIAN, "all", "(S (NP Jeg) (VP så (NP $ 5)) * .)", "111111"),
        (NORWEGIAN, "penn", "(S *)", "000010"),
        ("(S (-LRB- -LRB-) (NN a) (-RRB- -RRB-))", "unicode", "(S a)", "010"),
        ("(S (-LSB- -LSB-) (NN a) (-RCB- -RCB-))", "unicode", "(S a)", "010"),
        ("(S (-LRB- -LRB-) (NN a) (-RRB- -RRB-))", "all", "(S -LRB- a -RRB-)", "111"),
        ("(S (RB *really*) (NP *T*-1) (NN a))", "penn", "(S *really* a)", "11"),
        ("(S (RB *really*) (NP *T*-1) (NN a))", "unicode", "(S a)", "1"),
        ("(S (NN-SBJ a) (NNP=2 b) (NN|NNS c) (nn d) (HYPH e))", "penn", "(S a b)", "11000"),
        ("(S (NP (-NONE- 0)) (VP (-NONE- *?*)))", "all", "()", ""),
        ("(S (. .) (: --))", "penn", "()", "00"),
        ("(UH Yes)", "penn", "(UH Yes)", "1"),
        ("(. .)", "unicode", "()", "0"),
        ("(S (NP (NN a)) (ADJP (JJ b)))", "penn", "(S (NP a) (ADJP b))", "11"),
    ],
)
def test_each_rule(text: str, rule: Rule, brackets: str, kept: str) -> None:
    sentence = cleaned(text, rule)
    assert sentence.tree.brackets() == brackets
    assert "".join(str(int(flag)) for flag in sentence.kept) == kept
    assert sentence.place == "here"


@pytest.mark.parametrize("word", ["*T*-1", "*pro*", "*PRO*-12", "*-1", "*U*", "*?*", "*ICH*=2", "*=1", "*に*"])
def test_empty_elements_by_their_words(word: str) -> None:
    assert is_empty(word, "NP")
    assert is_empty(word, None)


@pytest.mark.parametrize("word", ["*", "**", "***", "*a", "a*", "*a*b", "*a*-", "*-a", "0", "a*b*c", "*1", "**a**"])
def test_words_that_are_no_empty_elements(word: str) -> None:
    assert not is_empty(word, "NP")
    assert not is_empty(word, None)
    assert is_empty(word, "-NONE-")


def test_words_by_unicode() -> None:
    assert all(map(is_word, ["a", "'s", "1/2", "日", "U.S.", "ª", "½", "ा"]))
    assert not any(map(is_word, [".", "...", "$", "、", "(", "€", "*", "☺", "–", "''", "`"]))


def test_there_are_36_word_tags() -> None:
    assert len(PENN_WORD_TAGS) == 36
    assert set(reference.WORD_TAGS.split()) == PENN_WORD_TAGS < PENN_TAGS


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("NP-SBJ-1", "NP"),
        ("NP=2", "NP"),
        ("PRP$", "PRP$"),
        ("-LRB-", "-LRB-"),
        ("-NONE-", "-NONE-"),
        ("-", "-"),
        ("=", "="),
        ("", ""),
        ("S", "S"),
    ],
)
def test_categories(label: str, expected: str) -> None:
    assert category(label) == expected


# Treebanks


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ([SPOKEN], "penn"),
        (["(S (NN a) (XX b) (YY c))", "(S (NN a) (NN b))"], "penn"),
        (["(S (NN-1 a) (CD=2 b) (N c))"], "penn"),
        ([NORWEGIAN], "unicode"),
        (["(S (NN a) (YY c))"], "unicode"),
        (["(S (N a) (V b))", *[SPOKEN] * 2], "penn"),
        (["((the old) man)", "(a b)"], "unicode"),
        (["()"], "unicode"),
        (["(S (N a) (V b))"] * SAMPLE + [SPOKEN] * SAMPLE * 2, "unicode"),
        ([SPOKEN] * SAMPLE + ["(S (N a) (V b))"] * SAMPLE * 9, "penn"),
    ],
)
def test_the_tags_of_the_first_trees_choose_the_rule(tmp_path: Path, lines: list[str], rule: str) -> None:
    treebank = load_treebank([write(tmp_path / "a", "\n".join(lines))])
    assert treebank.cleaning == Cleaning(keep=rule)
    assert len(treebank.sentences) == len(lines)


@pytest.mark.parametrize("rule", ["penn", "unicode", "all"])
def test_the_rule_can_be_chosen(tmp_path: Path, rule: Rule) -> None:
    treebank = load_treebank([write(tmp_path / "a", f"{SPOKEN}\n{NORWEGIAN}")], Cleaning(keep=rule))
    assert treebank.cleaning.keep == rule
    for sentence, text in zip(treebank.sentences, [SPOKEN, NORWEGIAN], strict=True):
        assert (sentence.tree, sentence.kept) == (cleaned(text, rule).tree, cleaned(text, rule).kept)


def test_case_and_digits(tmp_path: Path) -> None:
    path = write(tmp_path / "a", "(S (NN Anno) (CD 1,984) (CD 1980s) (NNP N) (NNP <unk>))")

    def words(lowercase: bool, digits: Literal["keep", "N", "number"]) -> str:
        (sentence,) = load_treebank([path], Cleaning(lowercase=lowercase, digits=digits)).sentences
        assert sentence.kept == (True,) * 5
        return " ".join(sentence.tree.words)

    assert words(False, "keep") == "Anno 1,984 1980s N <unk>"
    assert words(True, "keep") == "anno 1,984 1980s n <unk>"
    assert words(True, "N") == "anno N,N Ns N <unk>"
    assert words(False, "number") == "Anno N 1980s N <unk>"


def test_normalised_brackets_stay_words(tmp_path: Path) -> None:
    (sentence,) = load_treebank(
        [write(tmp_path / "a", "(S (-LRB- -LRB-) (NN İ) (-RRB- -RRB-))")], Cleaning(keep="all", lowercase=True)
    ).sentences
    assert sentence.tree.words == ("(", "i̇", ")")


def test_sentences_that_count(tmp_path: Path) -> None:
    lines = [DOGS, "( (. .))", CATS, "(S (NN a))", "(NP (-NONE- *))"]
    path = write(tmp_path / "a", "\n".join(lines))
    for maximum, places in [(None, [1, 3, 4]), (3, [1, 3, 4]), (2, [1, 4]), (1, [4])]:
        treebank = load_treebank([path], Cleaning(maximum=maximum))
        assert [sentence.place for sentence in treebank.sentences] == [f"{path}:{i}" for i in range(1, 6)]
        assert [sentence.place for sentence in treebank.counted()] == [f"{path}:{place}" for place in places]


@pytest.mark.parametrize("maximum", [0, -1])
def test_no_sentence_has_fewer_than_one_word(maximum: int) -> None:
    with pytest.raises(ConfigError, match=f"--max-words {maximum}: give 1 or more"):
        Cleaning(maximum=maximum)


def test_names_progress_and_broken_trees(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one", f"{DOGS}\nstray\n{CATS}"), write(tmp_path / "two", DOGS)
    with pytest.raises(InputError, match="one:2: 'stray' is in no tree"):
        load_treebank([one, two])
    seen: list[int] = []
    treebank = load_treebank([one, str(two)], skip_broken=True, progress=seen.append)
    assert treebank.name == f"{one}, {two}"
    assert [str(error).startswith(f"{one}:2: ") for error in treebank.broken] == [True]
    assert sum(seen) == len(treebank.sentences) == 3
    assert load_treebank([two]).broken == []
    with pytest.raises(InputError, match="no tree in it"):
        load_treebank([write(tmp_path / "three", "stray")], skip_broken=True)


# Against the slow twin


def described(tree: reference.Tree | None) -> tuple[list[str], list[tuple[int, int, str]]]:
    """Words and constituents of a tree of the reference, in pre-order."""
    found: list[tuple[int, int, str]] = []

    def visit(part: reference.Tree, start: int) -> None:
        if isinstance(part, reference.Node):
            found.append((start, start + reference.size(part), part.label))
            for child in part.children:
                visit(child, start)
                start += reference.size(child)

    if tree is None:
        return [], []
    visit(tree, 0)
    return [word.replace("-LRB-", "(").replace("-RRB-", ")") for word in reference.words(tree)], found


def assert_agrees(sentence: Sentence, text_tree: reference.Tree, rule: Rule) -> None:
    def keep(word: str, tag: str) -> bool:
        if rule == "penn":
            return reference.keep_penn(tag)
        return reference.keep_unicode(re.sub("-[LR][RSC]B-", "()", word), tag)

    words, constituents = described(reference.clean(text_tree, keep))
    assert list(sentence.tree.words) == words
    if isinstance(text_tree, reference.Node):  # else it is a word with a tag, which stays: a tree has a bracket
        assert [(start, end, label or "") for start, end, label in sentence.tree.constituents] == constituents
    assert Counter(sentence.tree.spans()) == Counter(span[:2] for span in constituents if span[1] - span[0] > 1)
    assert sum(sentence.kept) == len(words)


PENN_TAG = st.sampled_from([*sorted(PENN_TAGS - {"(", ")"}), "NN-SBJ", "NNP=2", "NP", "NN|NNS", "X", "-LSB-"])
PENN_WORDS = "dog The 1,000 . -- `` $ % n't -LRB- -RRB- a-LRB-b * *-1 *T*-1 *pro* 0 *U* ** *a *T*=3 *=1 *b* 日本 。"
PENN_WORD = st.sampled_from(PENN_WORDS.split())
PENN_LIKE = [
    labelled_parts(st.sampled_from(["S", "NP-SBJ", "VP", "TOP"]), PENN_TAG, PENN_WORD, top)
    for top in (None, st.none(), st.just("TOP"))
]


@given(st.one_of(PENN_LIKE), st.sampled_from(["penn", "unicode"]))
def test_drawn_trees_are_cleaned_by_the_definitions(part: Part, rule: Rule) -> None:
    text = tree_of(part).brackets()
    assert_agrees(cleaned(text, rule), reference.read(text), rule)


@given(st.one_of(PENN_LIKE), st.sampled_from(["penn", "unicode", "all"]))
def test_what_counts_is_spoken(part: Part, rule: Rule) -> None:
    tree = tree_of(part)
    sentence = cleaned(tree.brackets(), rule)
    everything = cleaned(tree.brackets(), "all")
    assert sum(sentence.kept) == len(sentence.tree) <= len(sentence.kept)
    assert all(everything.kept)
    if rule != "penn":
        assert len(sentence.kept) == len(everything.kept)
        assert restrict(everything.tree, sentence.kept) == sentence.tree or len(tree.constituents) == 1


def test_masc_is_cleaned_by_the_definitions() -> None:
    treebank = load_treebank([MASC])
    assert treebank.cleaning.keep == "penn"
    assert len(treebank.sentences) == 4_565
    slow = reference.read_all(MASC.read_text())
    for sentence, tree in islice(zip(treebank.sentences, slow, strict=True), 1_000):
        assert_agrees(sentence, tree, "penn")


@pytest.mark.parametrize(
    ("name", "file", "keep", "rule", "size"),
    [
        ("wsj-sample", "wsj_0001-0199.mrg", "auto", "penn", 3_914),
        ("masc", "masc.trees", "unicode", "unicode", 4_565),
        ("greynir", "greynir-test.trees", "auto", "unicode", 500),
        ("farpahc", "farpahc.trees", "auto", "unicode", 4_177),
    ],
)
def test_real_treebanks_are_cleaned_by_the_definitions(
    name: str, file: str, keep: Rule | Literal["auto"], rule: Rule, size: int
) -> None:
    path = shared(name) / file
    treebank = load_treebank([path], Cleaning(keep=keep))
    assert treebank.cleaning.keep == rule
    assert len(treebank.sentences) == size
    slow = reference.read_all(path.read_text())
    for sentence, tree in islice(zip(treebank.sentences, slow, strict=True), 1_000):
        assert_agrees(sentence, tree, rule)
