"""Distances as bars between the characters of a text, as in the paper's figure: an SVG that stands alone.

       ▂ █ ▂ ▁ █ ▁        one bar before each character, the highest of all sequences as high as the row
    t h e _ o l d _ m     spaces as `_`

Everything is in `currentColor`, so that a page, dark or light, gives the picture its own colour.
"""

from __future__ import annotations

from collections.abc import Sequence

from prpn.trees.svg import escaped

COLUMN, HEIGHT, TEXT, GAP, MARGIN = 11, 56, 18, 18, 8
BAR = 5


def distance_bars(sequences: Sequence[tuple[Sequence[str], Sequence[float]]]) -> str:
    """Draw sequences of tokens with the distance before each, one below the other."""
    highest = max((d for _, distances in sequences for d in distances), default=0.0) or 1.0
    width = 2 * MARGIN + COLUMN * max((len(tokens) for tokens, _ in sequences), default=0)
    height = 2 * MARGIN + len(sequences) * (HEIGHT + TEXT + GAP) - GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" font-family="ui-monospace, monospace" font-size="13" text-anchor="middle" fill="currentColor">',
        f"<title>{escaped(' / '.join(''.join(tokens) for tokens, _ in sequences))}</title>",
    ]
    for row, (tokens, distances) in enumerate(sequences):
        ground = MARGIN + row * (HEIGHT + TEXT + GAP) + HEIGHT
        parts.append(f'<path d="M{MARGIN} {ground + 0.5}H{width - MARGIN}" stroke="currentColor" opacity="0.25"/>')
        for column, (token, distance) in enumerate(zip(tokens, distances, strict=True)):
            left, tall = MARGIN + column * COLUMN, round(HEIGHT * distance / highest, 1)
            place = f'x="{left - BAR / 2}" y="{round(ground - tall, 1)}"'
            parts.append(f'<rect {place} width="{BAR}" height="{tall}" opacity="0.6"/>')
            parts.append(f'<text x="{left + COLUMN / 2}" y="{ground + 14}">{escaped(token)}</text>')
    return "\n".join([*parts, "</svg>", ""])
