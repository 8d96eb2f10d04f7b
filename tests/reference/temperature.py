"""Ranges, levels and overlaps of a sentence, word by word from the definitions in `prpn.language.temperature`."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def range_starts(distances: Sequence[float], alpha: Callable[[float], float]) -> list[int]:
    starts = [0]
    for t in range(1, len(distances)):
        open_enough = []
        for i in range(t):
            gate = 1.0
            for j in range(i + 1, t):
                gate *= alpha(distances[t] - distances[j])
            if gate >= 0.5:
                open_enough.append(i)
        starts.append(min(open_enough))
    return starts


def levels(starts: Sequence[int]) -> int:
    """By walking up from every word: a constituent that begins at i lies in the one that begins at l_i."""
    deepest = 1
    for word in range(len(starts)):
        constituent = word if word in starts[1:] else starts[word]
        around = 1
        while constituent > 0:
            constituent, around = starts[constituent], around + 1
        deepest = max(deepest, around)
    return deepest


def overlapping_pairs(starts: Sequence[int]) -> int:
    ranges = [set(range(start, t)) for t, start in enumerate(starts)][1:]
    return sum(
        1
        for i, one in enumerate(ranges)
        for other in ranges[i + 1 :]
        if one & other and not one <= other and not other <= one
    )
