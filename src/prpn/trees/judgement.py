"""Judging trees by raw text alone: do words between two marks stay together once the marks are gone?

    share = |stretches that are constituents| / |stretches|

A stretch is what stands between two marks (`prpn.trees.punctuation`), two words or more but less than its sentence. The
trees are of the words that are said, so nothing in what was parsed tells where a mark stood. Which of several models,
or of several builders, has the larger share can be found for any language in which people write commas; no treebank is
needed. How well that agrees with F1 is in docs/evaluation.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, compress

import numpy as np

from prpn.baselines.trees import left, random_distances, right
from prpn.config import Builder
from prpn.errors import InputError
from prpn.parsing.parser import Parser
from prpn.trees.punctuation import between_marks, is_spoken
from prpn.trees.tree import Tree


@dataclass(frozen=True)
class Stretched:
    """The words of a sentence that are said, and the stretches among them."""

    words: tuple[str, ...]
    stretches: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Judgement:
    """Shares of the stretches of a text that trees have, by builder, and beside them what needs no model."""

    sentences: int
    stretches: int
    model: dict[Builder, float]
    random_distances: dict[Builder, float]
    right: float
    left: float


def stretched(sentences: Iterable[Sequence[str]]) -> list[Stretched]:
    """Those of the sentences, given as words, that have a stretch."""
    found = []
    for words in sentences:
        said = [is_spoken(word) for word in words]
        rank = [0, *accumulate(said)]  # how many words are said before each
        spans = {(rank[start], rank[end]) for start, end in between_marks(words).spans()}
        inner = frozenset((start, end) for start, end in spans if 1 < end - start < rank[-1])
        if inner:
            found.append(Stretched(tuple(compress(words, said)), inner))
    return found


def share_found(sentences: Sequence[Stretched], trees: Iterable[Tree]) -> float:
    """The share of all stretches that are constituents of these trees."""
    found = sum(len(one.stretches & set(tree.spans())) for one, tree in zip(sentences, trees, strict=True))
    return found / sum(len(one.stretches) for one in sentences)


def judge(parser: Parser, lines: Iterable[str], builders: Sequence[Builder], tokenized: bool = False) -> Judgement:
    """Judge a model's trees through some builders by the sentences of a text, one a line."""
    sentences = stretched(parser.words(line, tokenized) for line in lines)
    if not sentences:
        raise InputError("text", "no two words stand between marks", "give text with its punctuation")
    words = [one.words for one in sentences]
    random = np.random.default_rng(0)

    def share(tree_of: Callable[[Sequence[str]], Tree]) -> float:
        return share_found(sentences, map(tree_of, words))

    return Judgement(
        len(sentences),
        sum(len(one.stretches) for one in sentences),
        {b: share_found(sentences, (parsed.tree for parsed in parser.parse_many(words, b))) for b in builders},
        {b: share(lambda each, b=b: random_distances(each, random, b)) for b in builders},  # type: ignore[misc]
        share(right),
        share(left),
    )
