"""Distances and their tree, drawn in the terminal.

The distance d_i of the gap before word i is a bar in that very gap: the higher the bar, the more the words around it
are apart, and the earlier the sentence is split there. Bars run from the smallest distance of the sentence, a
sliver ▁, to the largest, since only their order makes the tree:

    eighths(i) = max(1, round(8 · rows · (d_i − min d) / (max d − min d)))

Below the words the tree joins them again, the lowest line being the first split. Sentences that are too long for one
row are drawn one word a line, the bar on the left and the tree on the right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from prpn.trees.brackets import VISIBLE_SPACES
from prpn.trees.drawing import WordRow, branches, outline, word_row
from prpn.trees.from_distances import Distances, as_numbers
from prpn.trees.tree import Tree

_ROWS = 5
_COLUMNS = 12
_RISING = " ▁▂▃▄▅▆▇█"
_GROWING = " ▏▎▍▌▋▊▉█"


def draw_distances(words: Sequence[str], distances: Distances, width: int = 80) -> str:
    """Draw the words with the distance of the gap before each as a bar."""
    values = as_numbers(words, distances)
    row = word_row(words, width)
    if row is None:
        return "\n".join(_beside(values, [word.translate(VISIBLE_SPACES) for word in words]))
    return "\n".join([*_above(values, row), row.text])


def draw_sentence(words: Sequence[str], distances: Distances, tree: Tree, width: int = 80) -> str:
    """Draw bars above the words and the tree below them; or bars, tree and words side by side, one word a line."""
    if len(words) != len(tree):
        raise ValueError(f"a tree over {len(tree)} words cannot be drawn under {len(words)}")
    values = as_numbers(words, distances)
    row = word_row(words, width)
    if row is None:
        left = _beside(values, [""] * len(words))
        room = width - max(len(line) for line in left)
        return "\n".join(bar + line for bar, line in zip(left, outline(tree, words, room), strict=True))
    return "\n".join([*_above(values, row), row.text, *branches(tree, row)])


def _above(values: list[float], row: WordRow) -> list[str]:
    """Draw vertical bars, each as wide as the gap it stands in, without the rows that none of them reaches."""
    lines = []
    for floor in reversed(range(0, 8 * _ROWS, 8)):
        line = [" "] * (max(row.starts, default=0))
        for start, eighths in zip(row.starts, _eighths(values, _ROWS), strict=True):
            line[start - row.gap : start] = _RISING[min(8, max(0, eighths - floor))] * row.gap
        lines.append("".join(line).rstrip())
    return [line for line in lines if line]


def _beside(values: list[float], texts: list[str]) -> list[str]:
    """Draw horizontal bars, and the distances as numbers, left of the texts."""
    numbers = [f"{value:.2f}" for value in values]
    digits = max(map(len, numbers), default=0)
    bars = ["█" * (eighths // 8) + _GROWING[eighths % 8].strip() for eighths in _eighths(values, _COLUMNS)]
    return [
        f"{bar:<{_COLUMNS}} {number:>{digits}}  {text}" for bar, number, text in zip(bars, numbers, texts, strict=True)
    ]


def _eighths(values: list[float], cells: int) -> list[int]:
    """Count the eighths of a cell each bar fills; an infinite value counts as the nearest finite one."""
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    span = (high - low) or 1.0
    return [max(1, round(8 * cells * ((min(high, max(low, value)) - low) / span))) for value in values]
