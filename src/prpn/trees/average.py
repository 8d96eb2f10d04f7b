"""Consensus of several trees of a sentence: the binary tree with the most span votes.

    v(i, j)  = Σ of the weights of the trees that have the constituent [i, j)
    V(i, j)  = v(i, j) + max_{i<k<j} V(i, k) + V(k, j)        V(i, i + 1) = 0

The tree behind V(0, n) has at least as many votes as any binary tree, so as any of the trees given. Among equal splits
the first wins. All spans of one length are worked out at once, for they depend on shorter ones only: O(n³) numbers in
O(n) array operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from prpn.errors import ConfigError, InputError
from prpn.trees.brackets import Constituent
from prpn.trees.families import split_spans
from prpn.trees.tree import Tree

LONGEST = 3_000


def average(trees: Sequence[Tree], weights: Sequence[float] | None = None) -> Tree:
    """Find the binary tree with the most votes of trees over the same words.

    Args:
        trees: One tree or more; each votes for its constituents of two words or more.
        weights: How much each of them counts; all count alike unless given.

    Raises:
        InputError: The trees are over different words, or a sentence is too long to hold the votes for all its spans.
        ConfigError: No tree, or weights that do not fit.

    """
    if not trees:
        raise ConfigError("no trees to average: give one or more")
    weights = [1.0] * len(trees) if weights is None else weights
    if len(weights) != len(trees):
        raise ConfigError(f"{len(weights)} weights for {len(trees)} trees: give one for each")
    for weight in weights:
        if not 0 <= weight < math.inf:
            raise ConfigError(f"weight {weight} of a tree: give a finite number, 0 or more")
    words = trees[0].words
    for number, tree in enumerate(trees, 1):
        if tree.words != words:
            raise InputError("average", f"tree {number} is not over the words of tree 1", "give the same sentence")
    size = len(words)
    if size > LONGEST:
        cause = f"a sentence of {size:,} words, and votes for all its spans need memory for their square"
        raise InputError("average", cause, f"leave out sentences of more than {LONGEST:,} words")
    votes = np.zeros((size + 1, size + 1))
    for tree, weight in zip(trees, weights, strict=True):
        for span in set(tree.spans()):
            votes[span] += weight
    return Tree(words, tuple(Constituent(*span) for span in _best(votes) or [(0, 1)] * size))


def _best(votes: NDArray[np.float64]) -> list[tuple[int, int]]:
    size = len(votes) - 1
    best, split = np.zeros_like(votes), np.zeros(votes.shape, dtype=np.int64)
    for length in range(2, size + 1):
        starts = np.arange(size - length + 1)
        middles = starts[:, None] + np.arange(1, length)  # (spans of this length, ways to split them)
        both = best[starts[:, None], middles] + best[middles, starts[:, None] + length]
        first = both.argmax(axis=1)
        best[starts, starts + length] = votes[starts, starts + length] + both[starts, first]
        split[starts, starts + length] = middles[starts, first]
    return split_spans(size, lambda start, end: int(split[start, end]))
