"""Trees as pictures: an SVG that stands alone, in the colour of the text around it.

    ╭────┴────╮          bars with round corners join the middles of children, and a stem leads to the label, if any;
    the    ╭──┴──╮       `layout` says where everything is
          old   man

The title is the tree in brackets, for readers who do not see the picture. Everything is in `currentColor`, so that a
page, dark or light, gives the picture its own colour.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from prpn.trees.layout import LABEL_SIZE, STEM, TAG_SIZE, WORD_SIZE, Layout, lay_out

if TYPE_CHECKING:
    from prpn.trees.tree import Tree

_CORNER = 8  # the middles of siblings are always further apart than two corners
_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0 cannot even escape these


def svg(tree: Tree) -> str:
    """Draw the tree above a row of its words, with the labels it has."""
    layout = lay_out(tree)
    width, height = layout.width, layout.height
    labelled = (node for node in layout.phrases if layout.texts[node])
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" font-family="system-ui, sans-serif" text-anchor="middle" fill="currentColor">'
    )
    line_style = 'fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" opacity="0.45"'
    word_style = f'font-size="{WORD_SIZE}" direction="{"ltr" if layout.rightwards else "rtl"}"'
    parts = [
        [head, f"<title>{escaped(tree.brackets())}</title>"],
        _group(line_style, [_line(layout, node) for node in layout.phrases]),
        _group(f'font-size="{LABEL_SIZE}" font-weight="600"', _texts(layout, labelled, 13)),
        _group(f'font-size="{TAG_SIZE}" opacity="0.7"', _texts(layout, layout.tags, 13)),
        _group(word_style, _texts(layout, layout.words, 17)),
        ["</svg>\n"],
    ]
    return "\n".join(chain.from_iterable(parts))


def _line(layout: Layout, node: int) -> str:
    """Draw the bar of a constituent, the lines from it down to the children, and the stem up to the label."""
    column, bar = layout.columns[node], layout.bars[node]
    is_root = node == len(layout.words)
    stem_top = bar - STEM if layout.texts[node] or is_root else bar  # elsewhere the parent's line comes down to the bar
    ends = sorted((layout.columns[child], layout.tops[child]) for child in layout.phrases[node])
    if len(ends) == 1:
        return f'<path d="M{column} {ends[0][1]}V{stem_top}"/>'
    (left, left_end), *between, (right, right_end) = ends
    path = [
        f"M{left} {left_end}V{bar + _CORNER}Q{left} {bar} {left + _CORNER} {bar}",
        f"H{right - _CORNER}Q{right} {bar} {right} {bar + _CORNER}V{right_end}",
        *(f"M{middle} {end}V{bar}" for middle, end in between),
    ]
    if stem_top < bar:
        path.append(f"M{column} {bar}V{stem_top}")
    return f'<path d="{"".join(path)}"/>'


def _texts(layout: Layout, nodes: Iterable[int], baseline: int) -> list[str]:
    """Write the texts of nodes, each in the middle of its column and `baseline` below its top."""
    return [
        f'<text x="{layout.columns[node]}" y="{layout.tops[node] + baseline}">{escaped(layout.texts[node])}</text>'
        for node in nodes
    ]


def _group(style: str, elements: list[str]) -> list[str]:
    return [f"<g {style}>", *elements, "</g>"] if elements else []


def escaped(text: str) -> str:
    """Text as XML can hold it."""
    return escape(_FORBIDDEN.sub("", text))
