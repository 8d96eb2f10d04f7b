"""Trees drawn with lines, in two ways.

In a row, for sentences that fit: a constituent of height h, where words have height 0 and a constituent is one higher
than its highest child, is a line h rows away from the words, from the middle of its first child to that of its last.

      the   old   man   sat             ┬─┬─ the
       │     └──┬──┘     │              │ └─┬─ old
       └────┬───┘        │              │   └─ man
            └──────┬─────┘              └─ sat

One word a line, for all others: each column is one level of the tree. Where levels outnumber columns, the deepest ones
are written as brackets instead, so a drawing never takes more than the words times the width.

Widths are in terminal cells: a Chinese character takes two, a combining accent none.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from rich.cells import cell_len

from prpn.trees.brackets import VISIBLE_SPACES, Constituent, bracketed
from prpn.trees.families import depths_of, families

if TYPE_CHECKING:
    from prpn.trees.tree import Tree

_UPSIDE_DOWN = str.maketrans("└┘┬┴", "┌┐┴┬")
_GAPS = (3, 2, 1)


@dataclass(frozen=True)
class WordRow:
    """A sentence in one row, with a gap of the same width before each word, the first included."""

    text: str
    gap: int
    starts: list[int]
    middles: list[int]


def draw_tree(tree: Tree, width: int) -> str:
    """Draw the tree above a row of its words if that fits, else one word a line."""
    row = word_row(tree.words, width)
    if row is None:
        return "\n".join(outline(tree, tree.words, width))
    lines = [line.translate(_UPSIDE_DOWN) for line in reversed(branches(tree, row))]
    return textwrap.dedent("\n".join([*lines, row.text]))


def word_row(words: Sequence[str], width: int) -> WordRow | None:
    """Put the words in one row, as loose as `width` allows, or give None if they do not fit.

    Right-to-left scripts never fit, for terminals would reorder the row and not the lines of the tree.
    """
    if 2 * len(words) > width or any(unicodedata.bidirectional(letter) in ("R", "AL") for w in words for letter in w):
        return None
    shown = [word.translate(VISIBLE_SPACES) for word in words]
    cells = [max(1, cell_len(word)) for word in shown]
    gap = next((gap for gap in _GAPS if sum(cells) + gap * len(words) <= width), None)
    if gap is None:
        return None
    text = "".join(" " * (gap + room - cell_len(word)) + word for word, room in zip(shown, cells, strict=True))
    starts = [end - room for end, room in zip(accumulate(gap + room for room in cells), cells, strict=True)]
    return WordRow(text, gap, starts, [start + (room - 1) // 2 for start, room in zip(starts, cells, strict=True)])


def branches(tree: Tree, row: WordRow) -> list[str]:
    """Draw the tree below a row of its words; the line nearest to them comes first."""
    spans = _distinct_spans(tree)
    middles = row.middles + [0] * len(spans)
    heights = [0] * len(middles)
    canvas: list[list[str]] = []
    for node, children in families(len(tree), spans):
        height = heights[node] = 1 + max(heights[child] for child in children)
        while len(canvas) < height:
            canvas.append([" "] * (row.middles[-1] + 1))
        left, right = middles[children[0]], middles[children[-1]]
        middle = middles[node] = (left + right) // 2
        line = canvas[height - 1]
        line[left : right + 1] = "└" + "─" * (right - left - 1) + "┘"
        line[middle] = "┬"
        for child in children[1:-1]:
            line[middles[child]] = "┼" if middles[child] == middle else "┴"
        for child in children:
            for between in canvas[heights[child] : height - 1]:
                between[middles[child]] = "│"
    return ["".join(line).rstrip() for line in canvas]


def outline(tree: Tree, words: Sequence[str], width: int) -> list[str]:
    """Draw one line for each word, indented by the constituents it is in; it shows `words` in place of the tree's."""
    spans = _distinct_spans(tree)
    depths = depths_of(spans)
    longest = max((cell_len(word) for word in words), default=0)
    room = max(1, width // 2, width - 1 - longest)  # a single long word must not squeeze the tree
    levels = min(room, max(depths, default=0))  # how many are drawn as lines
    step = 2 if 2 * levels <= room else 1
    folded = [Constituent(*span) for span, depth in zip(spans, depths, strict=True) if depth > levels]
    shown = bracketed(words, folded) if folded else [word.translate(VISIBLE_SPACES) for word in words]
    lines = []
    upcoming = [span for span, depth in zip(spans, depths, strict=True) if depth <= levels + 1][::-1]
    enclosing: list[tuple[int, int]] = []
    for i, text in enumerate(shown):
        while enclosing and enclosing[-1][1] <= i:
            enclosing.pop()
        while upcoming and upcoming[-1][0] == i:
            enclosing.append(upcoming.pop())
        path = enclosing if len(enclosing) > levels else [*enclosing, (i, i + 1)]
        rails = [_rail(parent, child, i)[:step] for parent, child in pairwise(path)]
        lines.append("".join([*rails, " ", text]) if rails else text)
    return lines


def _rail(parent: tuple[int, int], child: tuple[int, int], line: int) -> str:
    """Choose what the column of `parent` shows on the line of a word inside `child`."""
    last = child[1] == parent[1]
    if parent[0] == line:
        return "┬─"
    if child[0] == line:
        return "└─" if last else "├─"
    return "  " if last else "│ "


def _distinct_spans(tree: Tree) -> list[tuple[int, int]]:
    """List each span once: a constituent with a single child is drawn as that child."""
    return list(dict.fromkeys(tree.spans()))
