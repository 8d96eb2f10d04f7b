"""How the trees of a model fail, seen without a gold tree.

A model is collapsed if its trees hardly depend on the words: they overlap with left or right branching by `COLLAPSED`
percent or more, or equal distances decided in more than half of the sentences. It is foreign to sentences most of whose
words it does not know: to it they are all alike, and its trees say nothing about the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prpn.baselines.trees import left, right
from prpn.config import Builder
from prpn.parsing.parser import Parser, Scores
from prpn.text.fitness import UNKNOWN
from prpn.trees.from_distances import has_ties
from prpn.trees.protocols import PROTOCOLS
from prpn.trees.scores import f1_between
from prpn.trees.tree import Tree

COLLAPSED = 95.0


@dataclass(frozen=True)
class Diagnosis:
    """What the trees of a model look like, whatever the gold trees are."""

    left_overlap: float
    right_overlap: float
    mean_depth: float
    tied_sentences: float
    saturated_distances: float
    unknown_words: float = 0.0

    @property
    def foreign(self) -> bool:
        """Whether the sentences are not in words that the model knows."""
        return self.unknown_words > 100 * UNKNOWN

    @property
    def collapsed(self) -> bool:
        """Whether the trees hardly depend on the words, though it knows them."""
        alike = max(self.left_overlap, self.right_overlap) >= COLLAPSED or self.tied_sentences > 50
        return alike and not self.foreign


def diagnose(trees: Sequence[Tree], scores: Sequence[Scores], parser: Parser, builder: Builder) -> Diagnosis:
    """Look at the trees of a parser, one or more, for the ways in which it fails; this takes no gold tree."""
    overlap = PROTOCOLS["kim-corpus"]
    free = [tree for tree in trees if len(tree) > 2]  # shorter ones have no choice
    ties = [has_ties(parser.in_units(found, builder), builder) for found in scores if len(found) > 2]
    return Diagnosis(
        left_overlap=f1_between(free, [left(tree.words) for tree in free], overlap) if free else 0.0,
        right_overlap=f1_between(free, [right(tree.words) for tree in free], overlap) if free else 0.0,
        mean_depth=float(np.mean([tree.depth() for tree in trees])),
        tied_sentences=100 * float(np.mean(ties or [False])),
        saturated_distances=100 * float(np.mean(parser.saturated(np.concatenate(scores)))),
        unknown_words=100 * parser.share_unknown(word for tree in trees for word in tree.words),
    )
