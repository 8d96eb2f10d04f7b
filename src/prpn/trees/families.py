"""Parents and children, read off spans alone.

The nodes of a tree are numbered, its words first and then its constituents in pre-order:

    words   the 0   old 1   man 2
    spans   [0, 3) 3   [1, 3) 4             families   4 → 1, 2     3 → 0, 4

Going through the spans from last to first, children come before parents and right comes before left. So what has no
parent yet lies on a stack, leftmost on top, and a constituent takes from it all that starts before its end. Each node
is put there once and taken once, and nothing recurses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence


def families(words: int, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, list[int]]]:
    """Give each constituent with its children from left to right, children before their parents."""
    orphans: list[tuple[int, int]] = []  # (start, node), leftmost last
    next_word = words
    for i in reversed(range(len(spans))):
        start, end = spans[i]
        while next_word > start:
            next_word -= 1
            orphans.append((next_word, next_word))
        children = []
        while orphans and orphans[-1][0] < end:
            children.append(orphans.pop()[1])
        orphans.append((start, words + i))
        yield words + i, children


def depths_of(spans: Iterable[tuple[int, int]]) -> list[int]:
    """Count for each span, given in pre-order, the spans that contain it, itself included."""
    depths = []
    ends: list[int] = []
    for start, end in spans:
        while ends and ends[-1] <= start:
            ends.pop()
        ends.append(end)
        depths.append(len(ends))
    return depths


def split_spans(words: int, middle: Callable[[int, int], int]) -> list[tuple[int, int]]:
    """List, in pre-order, the spans of the binary tree that splits [start, end) at `middle(start, end)`."""
    spans, waiting = [], [(0, words)]
    while waiting:
        start, end = waiting.pop()
        if end - start > 1:
            spans.append((start, end))
            cut = middle(start, end)
            waiting += [(cut, end), (start, cut)]
    return spans
