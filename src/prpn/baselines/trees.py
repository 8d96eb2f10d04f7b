"""Trees that anyone can draw without reading the sentence: what a parser has to beat.

    left               (((a b) c) d)
    right              (a (b (c d)))
    balanced           ((a b) (c d)): split in the middle, the left part gets the smaller half
    random             every binary tree is equally likely
    random-distances   random numbers in place of a model's distances, through the same builder
    upper              the binary tree that contains every gold bracket: no binary tree can score higher

A random binary tree is a random sequence of n − 1 nodes and n leaves. By the cycle lemma exactly one rotation of such a
sequence is a tree in pre-order (every beginning holds at least as many nodes as leaves), and each tree comes from as
many sequences as any other; so shuffle, then rotate to just behind the first lowest point of (nodes − leaves).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from prpn.config import Builder
from prpn.trees.brackets import Constituent
from prpn.trees.families import families, split_spans
from prpn.trees.from_distances import build
from prpn.trees.tree import Tree

Random = np.random.Generator


def left(words: Sequence[str]) -> Tree:
    """Every constituent begins with the first word."""
    return _tree(words, split_spans(len(words), lambda start, end: end - 1))


def right(words: Sequence[str]) -> Tree:
    """Every constituent ends with the last word."""
    return _tree(words, split_spans(len(words), lambda start, end: start + 1))


def balanced(words: Sequence[str]) -> Tree:
    """Halves of halves."""
    return _tree(words, split_spans(len(words), lambda start, end: (start + end) // 2))


def random_tree(words: Sequence[str], random: Random) -> Tree:
    """One of all binary trees, each with the same probability."""
    if not words:
        return _tree(words, [])
    steps = random.permutation([1] * (len(words) - 1) + [-1] * len(words))
    lowest = int(np.argmin(np.cumsum(steps)))
    is_node = np.roll(steps, -1 - lowest) == 1
    spans: list[tuple[int, int]] = []
    awaited: list[tuple[int, int]] = []  # (index of the span, children it still lacks), outermost first
    position = 0
    for node in is_node.tolist():
        if node:
            awaited.append((len(spans), 2))
            spans.append((position, position))
            continue
        position += 1
        while awaited:  # a leaf or a finished node is a child of the last node that lacks one
            index, lacking = awaited.pop()
            if lacking == 2:
                awaited.append((index, 1))
                break
            spans[index] = (spans[index][0], position)
    return _tree(words, spans)


def random_distances(words: Sequence[str], random: Random, builder: Builder) -> Tree:
    """What the builder makes of distances that say nothing, of standard deviation 1."""
    return build(words, math.sqrt(12) * random.random(len(words)), builder)


def upper(gold: Tree) -> Tree:
    """Binary branching where the gold tree leaves it open: to the right."""
    size, spans = len(gold), list(dict.fromkeys(gold.spans()))
    starts = [*range(size), *(start for start, _ in spans)]
    # Each child but the last heads what is right of it in its parent.
    heads = [(starts[i], spans[node - size][1]) for node, children in families(size, spans) for i in children[:-1]]
    return _tree(gold.words, sorted(heads, key=lambda span: (span[0], -span[1])))


def baselines(builder: Builder) -> dict[str, Callable[[Tree, Random], Tree]]:
    """All of them, by name; each is shown the gold tree, of which only `upper` looks at more than the words."""
    return {
        "left": lambda gold, random: left(gold.words),
        "right": lambda gold, random: right(gold.words),
        "balanced": lambda gold, random: balanced(gold.words),
        "random": lambda gold, random: random_tree(gold.words, random),
        "random-distances": lambda gold, random: random_distances(gold.words, random, builder),
        "upper": lambda gold, random: upper(gold),
    }


RANDOM_BASELINES = ("random", "random-distances")


def _tree(words: Sequence[str], spans: Sequence[tuple[int, int]]) -> Tree:
    return Tree(tuple(words), tuple(Constituent(*span) for span in spans or [(0, 1)] * len(words)))
