"""The five protocols against their definitions, on drawn trees, by hand, and on whole treebanks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import resources
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prpn.baselines.trees import left, right, upper
from prpn.trees import Tree
from prpn.trees.cleaning import Cleaning, Treebank, clean, load_treebank
from prpn.trees.protocols import PROTOCOLS, corpus_figures, protocols_named, sentence_figures, unwrapped
from prpn.trees.scores import GoldBrackets, figures
from prpn.trees.treebank import PlacedTree, read_line
from tests.reference import scores as reference
from tests.reference.trees import Nested, brackets
from tests.refusals import raises_config_error
from tests.text.shared_data import shared

LEAVES = ["(DT the)", "(NN dog)", "(VBZ barks)", "(NNP-TTL Mr.)", "(, ,)", "(. .)", "($ $)", "(-NONE- *T*-1)", "(CD 2)"]
LABELS = ["S", "NP-SBJ-1", "VP", "NP", "TOP", "ROOT", "S1", ""]
WRAPPERS = ["", "TOP", "ROOT", "S1"]


def cleaned(text: str) -> Tree:
    """The gold tree of `(S (NP (DT the) …) …)`."""
    return clean(PlacedTree("", read_line(text, True, "")), "penn", str).tree


def figures_of(golds: Sequence[Tree], predicted: Sequence[Tree], name: str) -> tuple[float, float, float]:
    """Precision, recall and F1 in percent."""
    protocol = PROTOCOLS[name]
    gold = GoldBrackets(golds, [protocol])
    counts = gold.counts(predicted, [protocol])[name]
    found = figures(counts[None], protocol, protocol.included(gold.lengths))
    return found.precision, found.recall, found.f1


def spans_of(name: str, text: str) -> list[tuple[int, int]]:
    """The brackets of a gold tree that a protocol counts, repeated ones repeated."""
    return sorted((start, end) for start, end, _ in PROTOCOLS[name].brackets(cleaned(text)))


# Against the definitions


@st.composite
def gold_texts(draw: st.DrawFn) -> str:
    """Trees with functions, unary chains, traces, punctuation and any wrapper; some have a word."""
    node = st.tuples(st.sampled_from(LABELS), st.integers(1, 2))

    def around(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        def write(parts: list[str], outer: tuple[str, int]) -> str:
            label, times = outer
            return f"({label} " * times + " ".join(parts) + ")" * times

        return st.builds(write, st.lists(part, min_size=1, max_size=4), node)

    text = draw(st.recursive(st.sampled_from(LEAVES), around, max_leaves=12))
    for label in draw(st.lists(st.sampled_from(WRAPPERS), max_size=2)):
        text = f"({label} {text})"
    return text


@st.composite
def binary(draw: st.DrawFn, words: list[str]) -> Nested:
    if len(words) == 1:
        return words[0]
    middle = draw(st.integers(1, len(words) - 1))
    return [draw(binary(words[:middle])), draw(binary(words[middle:]))]


@st.composite
def any_tree(draw: st.DrawFn, words: list[str]) -> Nested:
    """Any number of children, one included; the outermost brackets may be repeated."""
    cuts = draw(st.sets(st.integers(1, len(words) - 1), max_size=3)) if len(words) > 1 else set()
    bounds = [0, *sorted(cuts), len(words)]
    tree: Nested = [draw(any_tree(words[start:end])) for start, end in pairwise(bounds)] if cuts else list(words)
    return [tree] if draw(st.booleans()) else tree


def unlabelled(tree: Nested) -> reference.Tree:
    """A predicted tree as the reference reads a treebank: its outermost brackets, having no label, are wrappers."""
    return ("", tree) if isinstance(tree, str) else reference.Node("", [unlabelled(part) for part in tree])


@st.composite
def labelled(draw: st.DrawFn, tree: Nested) -> str:
    if isinstance(tree, str):
        return f"(NN {tree})"
    return f"({draw(st.sampled_from(LABELS))} " + " ".join([draw(labelled(part)) for part in tree]) + ")"


def has_words(text: str) -> bool:
    return bool(reference.penn(text))


@pytest.mark.parametrize("shape", [binary, any_tree])
@given(data=st.data())
def test_as_defined(shape: Callable[[list[str]], st.SearchStrategy[Nested]], data: st.DataObject) -> None:
    texts = data.draw(st.lists(gold_texts().filter(has_words), min_size=1, max_size=4))
    golds = [gold for text in texts for gold in reference.penn(text)]
    predicted = [data.draw(shape(reference.words(gold))) for gold in golds]
    ours = [cleaned(text) for text in texts]
    for name in PROTOCOLS:
        if PROTOCOLS[name].fewest_words <= max(map(reference.size, golds)):
            expected = reference.score(golds, list(map(unlabelled, predicted)), name)
            found = figures_of(ours, [Tree.from_brackets(brackets(tree)) for tree in predicted], name)
            assert found == pytest.approx(expected, abs=1e-9), name
            if shape is binary:  # which have no wrapper, so need none taken off
                assert expected == reference.score(golds, predicted, name)


@given(gold_texts().filter(has_words), st.data())
def test_labelled_predictions(text: str, data: st.DataObject) -> None:
    (gold,) = reference.penn(text)
    prediction = data.draw(any_tree(reference.words(gold)).flatmap(labelled))
    for name in PROTOCOLS:
        if PROTOCOLS[name].fewest_words <= reference.size(gold):
            expected = reference.score([gold], reference.penn(prediction), name)
            assert figures_of([cleaned(text)], [cleaned(prediction)], name) == pytest.approx(expected, abs=1e-9)
            assert figures_of([cleaned(text)], [cleaned(text)], name) == (100, 100, 100)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)), min_size=1))
def test_ratios(rows: list[tuple[int, int, int]]) -> None:
    counts = np.array([(min(row), row[1], row[2]) for row in rows])
    expected = [reference.ratios(hits, gold, predicted) for hits, predicted, gold in counts.tolist()]
    np.testing.assert_allclose(sentence_figures(counts), expected, atol=1e-12)
    np.testing.assert_allclose(corpus_figures(counts), expected, atol=1e-12)
    np.testing.assert_allclose(corpus_figures(np.stack([counts, counts])), [expected, expected], atol=1e-12)


# By hand: (the (old man)) sat, with a wrapper and a unary chain over the sentence

PLAIN = "(S (NP (DT the) (NN old) (NN man)) (VP (VBD sat)) (. .))"
WRAPPED = f"({PLAIN})"
CHAIN = "(ROOT (S (SBAR (NP (NP (DT the) (NN old) (NN man))) (VP (VBD sat)) (. .))))"


@pytest.mark.parametrize(
    ("name", "plain", "chain"),
    [
        ("klein", [(0, 3), (0, 4)], [(0, 3), (0, 4)]),
        ("released", [(0, 3)], [(0, 3)]),
        ("kim", [(0, 3)], [(0, 3), (0, 4)]),  # two over the sentence, one of them removed
        ("kim-corpus", [(0, 3)], [(0, 3), (0, 4)]),
        ("evalb", [(0, 3), (0, 4)], [(0, 3), (0, 3), (0, 4), (0, 4)]),
    ],
)
def test_brackets(name: str, plain: list[tuple[int, int]], chain: list[tuple[int, int]]) -> None:
    assert spans_of(name, PLAIN) == plain
    assert spans_of(name, WRAPPED) == plain
    assert spans_of(name, CHAIN) == chain


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("(S (NN a) (NN b))", [(0, 2)]),
        ("((S (NN a) (NN b)))", [(0, 2)]),
        ("(TOP (S (NN a) (NN b)))", [(0, 2)]),
        ("(S1 (S (NN a) (NN b)))", [(0, 2)]),
        ("((ROOT (S (NN a) (NN b))))", [(0, 2)]),
        ("(ROOT (NN a) (NN b))", [(0, 2)]),  # more than one node inside: it is the sentence
        ("(ROOT (S (NN a) (NN b)) (. .))", [(0, 2)]),  # a single one, once the full stop is gone
        ("(ROOT (S (NN a) (NN b)) (NN c))", [(0, 3), (0, 2)]),
        ("(S (ROOT (NN a) (NN b)))", [(0, 2), (0, 2)]),  # a wrapper is outermost
        ("(S (S (NN a) (NN b)))", [(0, 2), (0, 2)]),
        ("(ROOT-1 (S (NN a) (NN b)))", [(0, 2), (0, 2)]),
        ("(ROOT (S (NN a)))", []),
    ],
)
def test_wrappers(text: str, spans: list[tuple[int, int]]) -> None:
    assert unwrapped(cleaned(text)) == spans


def test_brackets_over_fewer_than_two_words_never_count() -> None:
    for name in PROTOCOLS:
        assert spans_of(name, "(S (NP (NN a)) (. .))") == []
        assert PROTOCOLS[name].brackets(Tree((), ())) == set()
    assert spans_of("klein", "(S (NP (PRP I)) (VP (VBP see)))") == [(0, 2)]


def test_over_the_corpus_or_the_mean_of_sentences() -> None:
    golds = [cleaned(PLAIN), cleaned("(S (NP (NN a) (NN b)) (VP (NN c) (NP (NN d) (NN e))))")]
    predicted = [Tree.from_brackets("(((a a) a) a)"), Tree.from_brackets("(a (b (c (d e))))")]
    # brackets but the sentence    gold 03, predicted 03 02        gold 02 25 35, predicted 15 25 35
    assert figures_of(golds, predicted, "klein") == pytest.approx((500 / 7, 500 / 6, 1000 / 13))
    assert figures_of(golds, predicted, "evalb") == pytest.approx((500 / 7, 500 / 6, 1000 / 13))
    assert figures_of(golds, predicted, "kim-corpus") == pytest.approx((60, 75, 200 / 3))
    means = (50 + 200 / 3) / 2, (100 + 200 / 3) / 2, (200 / 3 + 200 / 3) / 2
    assert figures_of(golds, predicted, "released") == pytest.approx(means)
    assert figures_of(golds, predicted, "kim") == pytest.approx(means)


def test_sentences_without_gold_brackets() -> None:
    flat, nested = cleaned("(S (NN a) (NN b) (NN c))"), Tree.from_brackets("(a (b c))")
    assert figures_of([flat], [nested], "released") == (0, 100, 0)
    assert figures_of([flat], [flat], "released") == (100, 100, 100)
    assert figures_of([cleaned("(S (NP (NN a) (NN b)) (NN c))")], [flat], "released") == (0, 0, 0)
    assert figures_of([flat], [nested], "klein") == pytest.approx((50, 100, 200 / 3))


def test_short_sentences() -> None:
    golds = [cleaned("(NN a)"), cleaned("(NP (NN a) (NN b))"), cleaned("(S (NN a) (VP (NN b) (NN c)))")]
    predicted = [left(gold.words) for gold in golds]
    assert figures_of(golds, predicted, "released")[2] == pytest.approx(200 / 3), "one and two words score 100"
    assert figures_of(golds, predicted, "kim")[2] == pytest.approx(50), "one word is left out"
    assert figures_of(golds, predicted, "kim-corpus") == (0, 0, 0)
    assert figures_of(golds, predicted, "klein") == pytest.approx((200 / 3, 200 / 3, 200 / 3))


def test_no_binary_tree_matches_a_unary_chain_over_the_sentence_under_kim() -> None:
    gold = cleaned("(FRAG (NP (DT the) (NN man)))")
    assert figures_of([gold], [upper(gold)], "kim") == (0, 0, 0)
    assert figures_of([gold], [upper(gold)], "released") == (100, 100, 100)
    assert figures_of([gold], [upper(gold)], "evalb") == pytest.approx((100, 50, 200 / 3))
    assert figures_of([gold], [gold], "kim") == (100, 100, 100)


def test_by_name() -> None:
    assert [protocol.name for protocol in protocols_named([])] == reference.PROTOCOLS
    assert [protocol.name for protocol in protocols_named(["kim", "klein"])] == ["kim", "klein"]
    assert [protocol.name for protocol in protocols_named(name for name in ["kim"])] == ["kim"]
    assert [protocol.name for protocol in protocols_named(["kim", "evalb", "kim"])] == ["kim", "evalb"]
    with raises_config_error("no protocol is called 'kin'", "klein, released, kim, kim-corpus, evalb"):
        protocols_named(["kim", "kin"])


# Whole treebanks: F1 of left and right branching, of the upper bound under klein and evalb

TABLE = {
    ("wsj-sample", 10): (
        555,
        (29.26, 19.19, 16.88, 13.32, 28.60),
        (63.26, 58.60, 56.87, 54.85, 61.82),
        (88.22, 86.22),
    ),
    ("wsj-sample", None): (
        3914,
        (11.69, 8.63, 8.27, 6.36, 11.36),
        (39.41, 39.91, 39.61, 35.75, 38.27),
        (85.51, 83.04),
    ),
    ("masc", 10): (
        1820,
        (28.02, 24.08, 14.08, 6.87, 27.42),
        (70.64, 66.52, 61.08, 61.57, 69.13),
        (87.56, 85.68),
    ),
    ("masc", None): (
        4564,
        (10.70, 12.07, 7.82, 3.95, 10.42),
        (44.14, 51.57, 48.87, 39.88, 42.99),
        (87.13, 84.85),
    ),
}


@pytest.fixture(scope="module", params=["masc", "wsj-sample"])
def whole_treebank(request: pytest.FixtureRequest) -> tuple[str, Treebank]:
    """By name, all its sentences; the package brings masc."""
    own = Path(str(resources.files("prpn"))) / "corpora" / "masc" / "masc.trees"
    path = own if request.param == "masc" else shared("wsj-sample/wsj_0001-0199.mrg")
    return request.param, load_treebank([path])


@pytest.mark.parametrize("maximum", [10, None])
def test_published_baselines(whole_treebank: tuple[str, Treebank], maximum: int | None) -> None:
    name, treebank = whole_treebank
    assert treebank.cleaning == Cleaning(keep="penn")
    limited = replace(treebank, cleaning=replace(treebank.cleaning, maximum=maximum))
    golds = [sentence.tree for sentence in limited.counted()]
    protocols = list(PROTOCOLS.values())
    gold = GoldBrackets(golds, protocols)

    def f1(trees: list[Tree]) -> tuple[float, ...]:
        counts = gold.counts(trees, protocols)
        found = [figures(counts[p.name][None], p, p.included(gold.lengths)) for p in protocols]
        return tuple(round(figure.f1, 2) for figure in found)

    sentences, of_left, of_right, (klein, evalb) = TABLE[name, maximum]
    assert len(golds) == sentences
    assert f1([left(tree.words) for tree in golds]) == of_left
    assert f1([right(tree.words) for tree in golds]) == of_right
    bound = f1([upper(tree) for tree in golds])
    assert (bound[0], bound[-1]) == (klein, evalb)
