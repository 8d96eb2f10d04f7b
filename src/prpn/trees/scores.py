"""From bracket counts to figures with intervals, and to differences between systems that can be trusted.

Bootstrap: draw as many sentences as there are, with replacement, `RESAMPLES` times; a figure's interval holds the
middle 95 % of its values over the draws. All systems and protocols see the same draws, so the difference between two
systems has an interval of its own (paired bootstrap): much narrower than two separate intervals suggest, for what makes
a sentence hard makes it hard for both.

    weights w_bi = how often draw b took sentence i        F1 over the corpus in draw b: from Σ_i w_bi (m, p, g)_i
                                                           mean F1 in draw b:            Σ_i w_bi F1_i / Σ_i w_bi

    # B resamples, S sentences, D draws of a random baseline (1 for anything else)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from prpn.trees.protocols import Bracket, Protocol, corpus_figures, sentence_figures
from prpn.trees.tree import Tree

RESAMPLES = 1000
SEED = 20180426
_ROWS = 50  # resamples that are turned into floating point at once

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Figures:
    """Precision, recall and F1 in percent, and the 95 % interval of F1."""

    f1: float
    precision: float
    recall: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """F1 of one system minus that of another, in points, with its paired 95 % interval and two-sided p-value."""

    difference: float
    low: float
    high: float
    p: float


class GoldBrackets:
    """The gold brackets of a treebank by protocol, worked out once."""

    def __init__(self, trees: Sequence[Tree], protocols: Sequence[Protocol]) -> None:
        self.lengths = np.array([len(tree) for tree in trees])
        self._by_rule: dict[tuple[bool, bool, bool], list[set[Bracket]]] = {}
        for protocol in protocols:
            if _rule(protocol) not in self._by_rule:
                self._by_rule[_rule(protocol)] = [protocol.brackets(tree) for tree in trees]

    def counts(self, predicted: Sequence[Tree], protocols: Sequence[Protocol]) -> dict[str, NDArray[np.int64]]:
        """Matched, predicted and gold brackets (S, 3) by each protocol."""
        found: dict[tuple[bool, bool, bool], NDArray[np.int64]] = {}
        for protocol in protocols:
            rule = _rule(protocol)
            if rule not in found:
                pairs = zip(map(protocol.brackets, predicted), self._by_rule[rule], strict=True)
                found[rule] = np.array([(len(ours & gold), len(ours), len(gold)) for ours, gold in pairs]).reshape(
                    -1, 3
                )
        return {protocol.name: found[_rule(protocol)] for protocol in protocols}


class Bootstrap:
    """Resamples of the sentences, the same for all systems."""

    def __init__(self, sentences: int, resamples: int = RESAMPLES, seed: int = SEED) -> None:
        random = np.random.default_rng(seed)
        self.weights = np.zeros((resamples, sentences), dtype=np.uint16)
        for row in self.weights:
            row += np.bincount(random.integers(sentences, size=sentences), minlength=sentences).astype(np.uint16)

    def samples(self, counts: NDArray[np.int64], protocol: Protocol, included: NDArray[np.bool_]) -> Numbers:
        """F1 in each resample (B,), in percent, averaged over the draws of counts (D, S, 3)."""
        columns = np.concatenate(list(_columns(counts, protocol, included)), axis=1)  # (S, columns)
        sums = np.concatenate(
            [self.weights[row : row + _ROWS].astype(np.float64) @ columns for row in range(0, len(self.weights), _ROWS)]
        )  # (B, columns)
        if protocol.over_corpus:
            return 100 * corpus_figures(sums.reshape(len(sums), -1, 3))[..., 2].mean(axis=1)
        total, drawn = sums[:, :-1].mean(axis=1), sums[:, -1]
        return 100 * np.where(drawn > 0, total / np.maximum(drawn, 1), 1.0)  # without sentences as `figures`


def figures(
    counts: NDArray[np.int64], protocol: Protocol, included: NDArray[np.bool_], samples: Numbers | None = None
) -> Figures:
    """Figures of counts (D, S, 3), averaged over the draws; without samples there is no interval to give."""
    values = 100 * np.mean([_figures(draw[included], protocol) for draw in counts], axis=0)
    low, high = (np.nan, np.nan) if samples is None else np.percentile(samples, [2.5, 97.5])
    return Figures(float(values[2]), float(values[0]), float(values[1]), float(low), float(high))


def difference(first: Figures, first_samples: Numbers, second: Figures, second_samples: Numbers) -> Difference:
    """How much the first system is better than the second, on the same resamples."""
    gaps = first_samples - second_samples
    low, high = np.percentile(gaps, [2.5, 97.5])
    # One more resample than drawn, the observed one, so that p is never 0.
    tail = (1 + min(np.sum(gaps <= 0), np.sum(gaps >= 0))) / (1 + len(gaps))
    return Difference(first.f1 - second.f1, float(low), float(high), float(min(1.0, 2 * tail)))


def f1_between(first: Sequence[Tree], second: Sequence[Tree], protocol: Protocol) -> float:
    """F1 of two systems against each other, in percent: how far they agree."""
    return f1_of_pairs({"first": first, "second": second}, protocol)["first", "second"]


def f1_of_pairs(systems: Mapping[str, Sequence[Tree]], protocol: Protocol) -> dict[tuple[str, str], float]:
    """The same of every two of some systems, whose brackets are worked out once."""
    brackets = {name: [protocol.brackets(tree) for tree in trees] for name, trees in systems.items()}
    included = protocol.included(np.array([len(tree) for tree in next(iter(systems.values()))]))
    found = {}
    for first, second in combinations(systems, 2):
        pairs = zip(brackets[first], brackets[second], strict=True)
        counts = np.array([(len(ours & theirs), len(ours), len(theirs)) for ours, theirs in pairs]).reshape(-1, 3)
        found[first, second] = figures(counts[None], protocol, included).f1
    return found


def _figures(counts: NDArray[np.int64], protocol: Protocol) -> Numbers:
    if protocol.over_corpus:
        return corpus_figures(counts.sum(axis=0))
    return sentence_figures(counts).mean(axis=0) if len(counts) else np.ones(3)


def _columns(counts: NDArray[np.int64], protocol: Protocol, included: NDArray[np.bool_]) -> Sequence[Numbers]:
    """What is added up over the sentences of a resample."""
    if protocol.over_corpus:
        return [draw * included[:, None] for draw in counts.astype(float)]
    means = [sentence_figures(draw)[:, 2:] * included[:, None] for draw in counts]
    return [*means, included[:, None].astype(float)]


def _rule(protocol: Protocol) -> tuple[bool, bool, bool]:
    return protocol.whole_sentence, protocol.repeats, protocol.multiset
