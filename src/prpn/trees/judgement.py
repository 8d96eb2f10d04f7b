"""Judging trees by raw text alone: do words between two marks stay together once the marks are gone?

    share = |stretches that are constituents| / |stretches|

A stretch is what stands between two marks (`prpn.trees.punctuation`), two words or more but less than its sentence. The
trees are of the words that are said, so nothing in what was parsed tells where a mark stood. Which of several models,
or of several builders, has the larger share can be found for any language in which people write commas; no treebank is
needed. How well that agrees with F1 is in docs/evaluation.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, compress
from statistics import fmean
from typing import get_args

import numpy as np

from prpn.baselines.trees import left, random_distances, right
from prpn.config import Builder
from prpn.errors import InputError
from prpn.parsing.parser import Parser
from prpn.trees.cleaning import is_word
from prpn.trees.evaluation import DRAWS
from prpn.trees.from_distances import LEANING
from prpn.trees.punctuation import between_marks
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

    @property
    def best_builder(self) -> Builder:
        """The one with the largest share."""
        return max(self.model, key=lambda builder: self.model[builder])


def stretched(sentences: Iterable[Sequence[str]]) -> tuple[Stretched, ...]:
    """Those of the sentences, given as words, that have a stretch."""
    found = []
    for words in filter(None, sentences):
        said = [is_word(word) for word in words]
        rank = [0, *accumulate(said)]  # how many words are said before each
        spans = {(rank[start], rank[end]) for start, end in between_marks(words).spans()}
        inner = frozenset((start, end) for start, end in spans if 1 < end - start < rank[-1])
        if inner:
            found.append(Stretched(tuple(compress(words, said)), inner))
    return tuple(found)


def share_found(sentences: Sequence[Stretched], trees: Iterable[Tree]) -> float:
    """The share of all stretches that are constituents of these trees."""
    found = sum(len(one.stretches & set(tree.spans())) for one, tree in zip(sentences, trees, strict=True))
    return found / sum(len(one.stretches) for one in sentences)


def judge(
    parser: Parser, lines: Iterable[str], builders: Sequence[Builder], tokenized: bool = False, place: str = "text"
) -> Judgement:
    """Judge a model's trees through some builders by the sentences of a text, one a line; `place` names it in errors.

    Builders that lean are left out where the model's spread of distances was never measured.
    """
    parser.require_words()
    sentences = stretched(parser.words(line, tokenized) for line in lines)
    if not sentences:
        raise InputError(place, "no part of a sentence is set off by marks", "give text with its commas")
    words = [one.words for one in sentences]
    usable = [builder for builder in builders if parser.scale or builder not in LEANING]
    if not usable:
        cause = f"cannot be judged through {' and '.join(builders)}: the spread of its distances was not measured"
        raise InputError(parser.place, cause, "finish its training with --resume")
    return Judgement(
        len(sentences),
        sum(len(one.stretches) for one in sentences),
        {b: share_found(sentences, (parsed.tree for parsed in parser.parse_many(words, b))) for b in usable},
        {b: _share_at_random(sentences, b) for b in usable},
        share_found(sentences, map(right, words)),
        share_found(sentences, map(left, words)),
    )


@lru_cache(maxsize=len(get_args(Builder)))
def _share_at_random(sentences: tuple[Stretched, ...], builder: Builder) -> float:
    """The mean of some draws: kept, for models that split a text alike are judged by the same sentences."""
    random = np.random.default_rng(0)
    return fmean(
        share_found(sentences, (random_distances(one.words, random, builder) for one in sentences))
        for _ in range(DRAWS)
    )
