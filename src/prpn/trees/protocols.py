r"""Scoring protocols: which brackets count, and how counts become F1. The same trees differ by ten points between them.

For a sentence of n words let B be the constituents of two or more words, [0, n) the whole sentence.

    protocol     brackets of a tree                                             F1            sentences of
    klein        the set B ∪ {[0, n)}                                           corpus        1+ words
    released     the set B \ {[0, n)}                                            mean          1+ words
    kim          B as a list without the wrapper, one [0, n) removed, as a set  mean          2+ words
    kim-corpus   the same                                                       corpus        2+ words
    evalb        B as a list without the wrapper, [0, n) counted                corpus        1+ words

The wrapper is an outermost node without label, or labelled TOP, ROOT or S1, with a single node inside. With
m matched, p predicted and g gold brackets of a sentence,

    corpus   P = Σm / Σp,  R = Σm / Σg                       over all sentences,
    mean     P = m / p,  R = m / g,  F1 = 2PR / (P + R)      for each sentence, then averaged; without gold brackets
                                                             R = 1, and P = 1 if there is no predicted one either.

A unary chain over the whole sentence leaves [0, n) in the set of `kim`, which no binary tree can match.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from prpn.errors import ConfigError
from prpn.trees.tree import Tree

Span = tuple[int, int]
Bracket = tuple[int, int, int]
Counts = NDArray[np.int64]
"""Matched, predicted and gold brackets, a row for each sentence."""
WRAPPERS = (None, "", "TOP", "ROOT", "S1")


@dataclass(frozen=True)
class Protocol:
    """How a group of papers scores."""

    name: str
    whole_sentence: bool
    """Whether the bracket over all words counts (`kim`: only where a unary chain repeats it)."""
    repeats: bool
    """Whether brackets of a unary chain are told apart before the whole-sentence bracket is dropped."""
    multiset: bool
    """Whether a repeated bracket counts as often as it stands there."""
    over_corpus: bool
    """Whether counts are added up over the corpus; else F1 is averaged over sentences."""
    fewest_words: int
    origin: str

    def brackets(self, tree: Tree) -> set[Bracket]:
        """Give the brackets of a tree that this protocol looks at; the copies of a repeated one are numbered."""
        times = Counter(unwrapped(tree) if self.repeats else set(tree.spans()))
        whole = (0, len(tree))
        if not self.whole_sentence:
            times[whole] -= 1
        elif len(tree) > 1:
            times[whole] = max(1, times[whole])
        most = len(tree.constituents) if self.multiset else 1
        return {(*span, copy) for span, count in times.items() for copy in range(min(count, most))}

    def included(self, lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which sentences count, by their numbers of words."""
        return lengths >= self.fewest_words


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol("klein", True, False, False, True, 1, "Klein and Manning 2002; the cited rows of the paper's Table 5"),
        Protocol("released", False, False, False, False, 1, "the authors' program; the paper's own row of Table 5"),
        Protocol("kim", False, True, False, False, 2, "Kim et al. 2019 and most work since, sentence F1"),
        Protocol("kim-corpus", False, True, False, True, 2, "Kim et al. 2019, corpus F1"),
        Protocol("evalb", True, True, True, True, 1, "the EVALB program, unlabelled"),
    )
}


def protocols_named(names: Iterable[str]) -> list[Protocol]:
    """Protocols by their names, each once; all of them if there is none."""
    chosen = list(dict.fromkeys(names)) or list(PROTOCOLS)
    unknown = [name for name in chosen if name not in PROTOCOLS]
    if unknown:
        raise ConfigError(f"no protocol is called '{unknown[0]}': choose from {', '.join(PROTOCOLS)}")
    return [PROTOCOLS[name] for name in chosen]


def unwrapped(tree: Tree) -> list[Span]:
    """List the spans of two or more words of a tree without its wrapper."""
    spans, wrappers = tree.spans(), 0
    for outer, inner in pairwise(tree.constituents):
        if outer.label not in WRAPPERS or inner[:2] != (0, len(tree)):
            break
        wrappers += 1
    return spans[wrappers:]


def sentence_figures(counts: Counts) -> NDArray[np.float64]:
    """Precision, recall and F1 of each sentence."""
    matched, predicted, gold = counts.T.astype(float)
    recall = np.where(gold > 0, matched / np.maximum(gold, 1), 1.0)
    precision = np.where(predicted > 0, matched / np.maximum(predicted, 1), np.where(gold > 0, 0.0, 1.0))
    return np.stack([precision, recall, harmonic_mean(precision, recall)], axis=1)


def corpus_figures(totals: NDArray[np.floating]) -> NDArray[np.float64]:
    """Precision, recall and F1 of added-up counts (…, 3), on the last axis."""
    matched, predicted, gold = np.moveaxis(totals, -1, 0).astype(float)
    nothing = (predicted == 0) & (gold == 0)
    precision = np.where(nothing, 1.0, matched / np.maximum(predicted, 1e-12))
    recall = np.where(gold == 0, 1.0, matched / np.maximum(gold, 1e-12))
    return np.stack([precision, recall, harmonic_mean(precision, recall)], axis=-1)


def harmonic_mean(precision: NDArray[np.float64], recall: NDArray[np.float64]) -> NDArray[np.float64]:
    """F1; 0 where both are."""
    total = precision + recall
    return np.where(total > 0, 2 * precision * recall / np.where(total > 0, total, 1), 0.0)
