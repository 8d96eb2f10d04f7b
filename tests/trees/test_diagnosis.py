"""What tells a model that has collapsed, and what does not."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from prpn.baselines.trees import left, right
from prpn.trees import Builder, Tree, has_ties
from prpn.trees.diagnosis import Diagnosis, diagnose
from prpn.trees.evaluation import evaluate_parsers
from tests.trees.small_treebank import ALL, golds_of, parser, treebank, trees_of


@pytest.mark.parametrize("builder", ["paper", "unbiased"])
@pytest.mark.parametrize(
    ("flavour", "constant", "saturated"),
    [("released", 0.0, 0), ("released", 6.0, 100), ("released", -6.0, 100), ("paper", 1.0, 0), ("paper", -1.0, 100)],
)
def test_constant_distances_are_a_collapse(
    tmp_path: Path, flavour: str, constant: float, saturated: float, builder: Builder
) -> None:
    model = parser(flavour=flavour, builder=builder, constant=constant)
    result = evaluate_parsers(treebank(tmp_path), {"one": model}, ALL)
    found = result.diagnoses["one"]
    assert found.right_overlap == 100
    assert found.left_overlap < 50
    assert found.tied_sentences == 100
    assert found.saturated_distances == saturated
    assert found.collapsed
    assert result.to_json()["diagnostics"]["one"]["collapsed"] is True
    assert result.systems["one"] == result.systems["right"]


@pytest.mark.parametrize("flavour", ["paper", "released"])
def test_a_random_model_has_not_collapsed(tmp_path: Path, flavour: str) -> None:
    loaded = treebank(tmp_path)
    golds = golds_of(loaded)
    model = parser(4, flavour, scale=3.0)
    found = evaluate_parsers(loaded, {"one": model}, ALL).diagnoses["one"]
    trees, scores = trees_of(model, golds), np.concatenate(model.scores([gold.words for gold in golds]))
    assert not found.collapsed
    inner = [(tree, [span for span in tree.spans() if span[1] - span[0] < len(tree)]) for tree in trees]
    shared = sum(end == len(tree) for tree, spans in inner for _, end in spans)
    assert found.right_overlap == pytest.approx(100 * shared / sum(len(spans) for _, spans in inner))
    assert found.mean_depth == pytest.approx(sum(tree.depth() for tree in trees) / len(trees))
    sigmoid = [1 / (1 + math.exp(-score)) for score in scores.tolist()]
    flat = [s <= 0 for s in scores.tolist()] if flavour == "paper" else [not 0.01 <= s <= 0.99 for s in sigmoid]
    assert found.saturated_distances == pytest.approx(100 * sum(flat) / len(flat))
    assert 0 < found.saturated_distances < 100


def test_signs_of_a_collapse() -> None:
    def diagnosis(left_overlap: float = 20, right_overlap: float = 60, tied_sentences: float = 0) -> Diagnosis:
        return Diagnosis(left_overlap, right_overlap, 3.0, tied_sentences, 100.0)

    assert not diagnosis().collapsed, "saturated distances can still tell places apart before their activation"
    assert diagnosis(left_overlap=95).collapsed
    assert diagnosis(right_overlap=95).collapsed
    assert not diagnosis(left_overlap=94.9, right_overlap=94.9, tied_sentences=50).collapsed
    assert diagnosis(tied_sentences=51).collapsed


def test_a_model_of_another_language_is_foreign_and_not_collapsed() -> None:
    sentences = [tuple("uvwxyz"), tuple("xyz")]
    model = parser()
    assert model.share_unknown("uvwxyz") > 0.4
    found = diagnose([left(words) for words in sentences], model.scores(sentences), model, "unbiased")
    assert (found.left_overlap, found.collapsed, found.foreign) == (100, False, True)


def test_left_branching_is_a_collapse() -> None:
    sentences = [("the", "old", "man", "can", "not", "do")[:size] for size in (1, 2, 3, 6)]
    scores = [np.arange(float(len(words))) for words in sentences]
    found = diagnose([left(words) for words in sentences], scores, parser(), "unbiased")
    assert (found.left_overlap, found.tied_sentences) == (100, 0)
    assert found.right_overlap == 0
    assert found.mean_depth == (1 + 1 + 2 + 5) / 4
    assert found.collapsed


def test_sentences_without_a_choice_say_nothing() -> None:
    """Two words have one tree, whatever their distances."""
    sentences = [("a", "b")] * 9 + [tuple("abcd")]
    trees = [right(words) for words in sentences[:-1]] + [Tree.from_brackets("((a b) (c d))")]
    for last, tied in (([0.0, 1.0, 3.0, 2.0], 0), ([0.0, 1.0, 1.0, 1.0], 100)):
        scores = [np.zeros(2)] * 9 + [np.array(last)]
        for builder in ("paper", "unbiased"):
            assert has_ties(last, builder) == bool(tied)
            found = diagnose(trees, scores, parser(), builder)
            assert found.tied_sentences == tied
            assert (found.left_overlap, found.right_overlap) == (50, 50)
    short = diagnose(trees[:3], [np.zeros(2)] * 3, parser(), "paper")
    assert (short.left_overlap, short.right_overlap, short.tied_sentences, short.collapsed) == (0, 0, 0, False)
