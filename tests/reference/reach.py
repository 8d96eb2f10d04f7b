"""How far back a word reaches in a tree, word by word from the paper's two rules (§3), by recursion on nested lists.

    x_t is not the left most child of any subtree     l_t = position of x_t's left most sibling
    x_t is the left most child of a subtree y         l_t = position of the left most word of y's left most sibling

A sibling that is a subtree has the position of its left most word. Of several subtrees that x_t begins, y is the one
with a sibling to its left: all smaller ones are their own left most siblings. The first word has none: l_0 = 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tests.reference.trees import Nested


def words_of(tree: Nested) -> list[str]:
    return [tree] if isinstance(tree, str) else [word for child in tree for word in words_of(child)]


def ancestry(tree: Nested, t: int) -> list[tuple[int, int]]:
    """From the root down to x_t: which child leads there, and the position of its left most sibling."""

    def walk(node: Nested, first: int) -> list[tuple[int, int]]:
        if isinstance(node, str):
            return []
        start = first
        for index, child in enumerate(node):
            if t < start + len(words_of(child)):
                return [(index, first), *walk(child, start)]
            start += len(words_of(child))
        raise IndexError(t)

    return walk(tree, 0)


def reach_start(tree: Nested, t: int) -> int:
    *subtrees, word = [(0, 0), *ancestry(tree, t)]  # the sentence itself has no siblings
    if word[0] > 0:
        return word[1]
    for index, leftmost_sibling in reversed(subtrees):  # those that x_t begins, from small to large
        if index > 0:
            return leftmost_sibling
    return 0


def reach_starts(tree: Nested) -> list[int]:
    return [reach_start(tree, t) for t in range(len(words_of(tree)))]


def height(tree: Nested) -> int:
    """Branchings on the longest way down to a word: a node with one child adds nothing."""
    return 0 if isinstance(tree, str) else (len(tree) > 1) + max(map(height, tree))


def subtrees(tree: Nested, first: int = 0) -> Iterator[tuple[int, int, int]]:
    """(start, end, height) of every constituent."""
    if isinstance(tree, list):
        yield first, first + len(words_of(tree)), height(tree)
        for child in tree:
            yield from subtrees(child, first)
            first += len(words_of(child))


def distances_of(tree: Nested) -> list[float]:
    """The height of the smallest constituent around each gap; before the first word one more than the sentence's."""
    distances = [height(tree) + 1.0]
    for t in range(1, len(words_of(tree))):
        around = [(end - start, high) for start, end, high in subtrees(tree) if start < t < end]
        distances.append(float(min(around)[1]))
    return distances


def all_trees(words: list[str]) -> Iterator[Nested]:
    """All trees over the words in which every node has two children or more."""
    if len(words) == 1:
        yield words[0]
    for parts in partitions(words):
        if len(parts) > 1:
            yield from map(list, product(*[list(all_trees(part)) for part in parts]))


def partitions(words: list[str]) -> Iterator[list[list[str]]]:
    """All ways to cut the words into parts."""
    if not words:
        yield []
    for i in range(1, len(words) + 1):
        for rest in partitions(words[i:]):
            yield [words[:i], *rest]
