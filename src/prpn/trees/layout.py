"""Where everything in the picture of a tree is, in pixels.

          S               each node owns a box, as wide as its text and as the boxes of its children side by side:
     ╭────┴────╮
     │        VP          width(word) = text          width(node) = max(label, Σ width(child))       words first
     │     ╭───┴───╮
    NP     │      NP      left(child) = left(node) + (width(node) − Σ width(child)) / 2              root first
     │     │       │                    + widths of the children before it
    PRP   VBP     NNS
    we    like   trees    x(node)     = left(node) + width(node) / 2

All that belongs to a node stays inside its box, so nothing meets what it is not joined to, however long a label is.
Heights are as in the terminal, words 0 and a constituent one more than its highest child, except that a tag stands on
its word. A constituent without label and with a single child is drawn as that child.

Only who shows the picture knows the font, so widths are guesses on the safe side, from the cells a terminal would take.
A sentence whose first letter belongs to a right-to-left script runs from right to left.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from rich.cells import cell_len

from prpn.trees.brackets import VISIBLE_SPACES, Constituent
from prpn.trees.families import families

if TYPE_CHECKING:
    from prpn.trees.tree import Tree

WORD_SIZE, LABEL_SIZE, TAG_SIZE = 16, 13, 12  # of the letters
STEM = 6  # from the bar that joins the children of a constituent to its label
_WORD, _LABEL, _TAG = 22, 16, 18  # heights
_RISE = 28  # from the top of a child to the bar
_GAP = 14  # between two texts
_MARGIN = 12


@dataclass(frozen=True)
class Layout:
    """Places of all nodes, which are numbered as in `families`: first the words, then the constituents drawn."""

    width: int
    height: int
    rightwards: bool  # the sentence runs from left to right
    texts: list[str]  # words and labels
    columns: list[int]  # the middle of each node
    tops: list[int]  # its upper end, where the line from its parent arrives
    bars: list[int]  # the line that joins its children
    words: range
    tags: list[int]
    phrases: dict[int, list[int]]  # all other nodes, with their children


def lay_out(tree: Tree) -> Layout:
    """Find a place for each word and constituent; coordinates are whole numbers, as all widths are even."""
    words = range(len(tree))
    constituents = _drawn(tree.constituents)
    texts = [text.translate(VISIBLE_SPACES) for text in (*tree.words, *(each.label or "" for each in constituents))]
    joined = dict(families(len(tree), [(start, end) for start, end, _ in constituents]))
    tags = sorted(node for node, children in joined.items() if children[0] in words and len(children) == 1)
    phrases = {node: children for node, children in joined.items() if children[0] not in words or len(children) > 1}
    columns, width = _columns(texts, joined, words)
    rightwards = _runs_rightwards(tree.words)
    if not rightwards:
        columns = [width - column for column in columns]
    tops, bars, height = _rows(texts, phrases, tags, words)
    return Layout(width, height, rightwards, texts, columns, tops, bars, words, tags, phrases)


def _drawn(constituents: Iterable[Constituent]) -> list[Constituent]:
    """Choose what is drawn of the constituents over the same words: those with labels, or else a single one."""
    drawn: list[Constituent] = []
    for (start, end), same in groupby(constituents, lambda constituent: constituent[:2]):
        labelled = [constituent for constituent in same if constituent.label]
        drawn += labelled if labelled or end - start == 1 else [Constituent(start, end)]
    return drawn


def _columns(texts: Sequence[str], joined: dict[int, list[int]], words: range) -> tuple[list[int], int]:
    """Give the middle of each node's box, and the width of the picture."""
    widths = [_GAP + _width(text, WORD_SIZE if node in words else LABEL_SIZE) for node, text in enumerate(texts)]
    inner = [0] * len(texts)  # of all children together
    for node, children in joined.items():
        inner[node] = sum(widths[child] for child in children)
        widths[node] = max(widths[node], inner[node])
    lefts = [_MARGIN] * len(texts)
    for node, children in reversed(joined.items()):
        left = lefts[node] + (widths[node] - inner[node]) // 2
        for child in children:
            lefts[child] = left
            left += widths[child]
    middles = [left + width // 2 for left, width in zip(lefts, widths, strict=True)]
    return middles, max(widths, default=0) + 2 * _MARGIN


def _rows(
    texts: Sequence[str], phrases: dict[int, list[int]], tags: Collection[int], words: range
) -> tuple[list[int], list[int], int]:
    """Give the top of each node, the bar that joins its children, and the height of the picture."""
    heights = [0] * len(texts)
    for node, children in phrases.items():
        heights[node] = 1 + max(heights[child] for child in children)
    label = STEM + _LABEL if any(texts[node] for node in phrases) else 0
    floor = _MARGIN + (_RISE + label) * max(heights, default=0)  # words and tags are below it, all else above
    word_top = floor + (_TAG if tags else 0)
    bars = [floor + label - (_RISE + label) * height for height in heights]
    tops = [bar - label if text else bar for text, bar in zip(texts, bars, strict=True)]
    for node in words:
        tops[node] = word_top
    for node in tags:
        tops[node] = floor
    return tops, bars, word_top + _WORD + _MARGIN


def _width(text: str, size: int) -> int:
    """Guess the width of a text: 0.62 em a cell, 0.2 em more for a capital and once more for the broadest letters."""
    broad = sum(letter.isupper() + (letter in "mwMW@%…—") for letter in text)
    return 2 * math.ceil(size * (0.31 * max(1, cell_len(text)) + 0.1 * broad))


def _runs_rightwards(words: Iterable[str]) -> bool:
    """Tell whether the first letter that has a direction runs from left to right."""
    directions = (unicodedata.bidirectional(letter) for word in words for letter in word)
    return next((direction for direction in directions if direction in ("L", "R", "AL")), "L") == "L"
