"""Judging trees by punctuation: stretches, shares, and the order of models and builders that follows."""

from __future__ import annotations

import pytest

from prpn.baselines.trees import left, right
from prpn.errors import InputError
from prpn.trees.judgement import judge, share_found, stretched
from tests.kernels.parsers import random_parser

SENTENCES = [
    ["the", "man", ",", "who", "sat", "down", ",", "left", "us", "."],
    ["no", "marks", "at", "all"],
    ["yes", ",", "of", "course", "he", "came", "!"],
    [",", ",", "."],
]


def test_stretches_are_counted_without_the_marks() -> None:
    first, second = stretched(SENTENCES)
    assert first.words == ("the", "man", "who", "sat", "down", "left", "us")
    assert first.stretches == {(0, 2), (2, 5), (5, 7)}
    assert (second.words, second.stretches) == (("yes", "of", "course", "he", "came"), {(1, 5)})


def test_shares_of_branching_to_one_side() -> None:
    sentences = stretched(SENTENCES)
    assert share_found(sentences, [right(one.words) for one in sentences]) == pytest.approx(2 / 4)
    assert share_found(sentences, [left(one.words) for one in sentences]) == pytest.approx(1 / 4)


def test_a_model_is_judged_through_every_builder() -> None:
    parser = random_parser(1)
    found = judge(parser, [" ".join(words) for words in SENTENCES], ["paper", "unbiased"], tokenized=True)
    sentences = stretched(SENTENCES)
    assert (found.sentences, found.stretches, found.right, found.left) == (2, 4, 0.5, 0.25)
    for builder, share in found.model.items():
        trees = [parsed.tree for parsed in parser.parse_many([one.words for one in sentences], builder)]
        assert share == share_found(sentences, trees)
    assert set(found.random_distances) == {"paper", "unbiased"}
    parser.scale = 0.0  # never measured
    assert judge(parser, ["", "w , x y z"], ["unbiased", "right-leaning"]).model.keys() == {"unbiased"}
    with pytest.raises(InputError, match="judged through left-leaning: the spread"):
        judge(parser, ["w , x y z"], ["left-leaning"])
    with pytest.raises(InputError, match="no part of a sentence is set off"):
        judge(parser, ["no marks at all"], ["paper"])
