"""Line plots as SVG: panels side by side on double logarithmic axes, readable on light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

Point = tuple[float, float]

COLOURS = ("#d9480f", "#1c7ed6", "#2f9e44", "#9c36b5")  # dark and light enough for either background
STYLE = "svg{color:#24292f}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}"
WIDTH, HEIGHT = 300, 230  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 52, 22, 16, 46  # margins inside it
HEAD = 52  # title and legend above all panels
PANELS_A_ROW = 2


@dataclass(frozen=True)
class Panel:
    """Curves by name over one quantity; all numbers are positive."""

    label: str
    series: Mapping[str, Sequence[Point]]


@dataclass(frozen=True)
class Scale:
    """Positive numbers to places on the page, by their logarithm."""

    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        """Where a number lies."""
        span = math.log(self.high / self.low) or 1.0
        return round(self.begin + (self.end - self.begin) * math.log(value / self.low) / span, 1)


def line_plots(title: str, panels: Sequence[Panel]) -> str:
    """Draw all panels with the same range upwards, so that they can be compared, under one legend."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.series))
    heights = [y for panel in panels for points in panel.series.values() for _, y in points]
    colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}
    columns = min(PANELS_A_ROW, len(panels))
    width, height = columns * WIDTH, HEAD + math.ceil(len(panels) / columns) * HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" font-family="system-ui, sans-serif" font-size="12" fill="currentColor">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<text x="{LEFT}" y="20" font-size="15" font-weight="600">{escape(title)}</text>',
        *_legend(colours),
    ]
    for index, panel in enumerate(panels):
        row, column = divmod(index, columns)
        parts.append(f'<g transform="translate({column * WIDTH} {HEAD + row * HEIGHT})">')
        parts += _panel(panel, colours, min(heights), max(heights))
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def ticks(low: float, high: float) -> list[float]:
    """Round numbers that enclose a range: powers of ten, and 2 and 5 times those while they are few."""
    powers = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    steps = (1, 2, 5) if high <= 200 * low else (1,)
    candidates = [step * power for power in powers for step in steps]
    begin = max(tick for tick in candidates if tick <= low)
    end = min(tick for tick in candidates if tick >= high)
    return [tick for tick in candidates if begin <= tick <= end]


def _legend(colours: Mapping[str, str]) -> list[str]:
    parts, x = [], LEFT
    for name, colour in colours.items():
        parts.append(f'<path d="M{x} 38h20" stroke="{colour}" stroke-width="2.5"/>')
        parts.append(f'<text x="{x + 26}" y="42">{escape(name)}</text>')
        x += 50 + 7 * len(name)
    return parts


def _panel(panel: Panel, colours: Mapping[str, str], lowest: float, highest: float) -> list[str]:
    values = sorted({x for points in panel.series.values() for x, _ in points})
    upwards = ticks(lowest, highest)
    across = Scale(values[0], values[-1], LEFT + 8, WIDTH - RIGHT - 8)
    up = Scale(upwards[0], upwards[-1], HEIGHT - BOTTOM, TOP)
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = ['<g stroke="currentColor" stroke-opacity="0.18">']
    parts += [f'<path d="M{LEFT} {up(tick)}H{right}"/>' for tick in upwards]
    parts += [f'<path d="M{across(value)} {bottom}v5" stroke-opacity="0.6"/>' for value in values]
    parts.append(
        f'</g><path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="currentColor" stroke-opacity="0.6"/>'
    )
    parts += [f'<text x="{LEFT - 6}" y="{up(tick) + 4}" text-anchor="end">{tick:,.10g}</text>' for tick in upwards]
    parts += [
        f'<text x="{across(value)}" y="{bottom + 18}" text-anchor="middle">{value:,.10g}</text>' for value in values
    ]
    middle = (LEFT + right) / 2
    parts.append(
        f'<text x="{middle}" y="{bottom + 36}" text-anchor="middle" font-weight="600">{escape(panel.label)}</text>'
    )
    for name, points in panel.series.items():
        places = [(across(x), up(y)) for x, y in points]
        line = " ".join(f"{x},{y}" for x, y in places)
        parts.append(f'<g fill="{colours[name]}" stroke="{colours[name]}" stroke-width="2">')
        parts.append(f'<polyline points="{line}" fill="none"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="2"/>' for x, y in places]
        parts.append("</g>")
    return parts
