"""Figures as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table


def table_of(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> Table:
    """The first two columns to the left, numbers to the right."""
    table = Table(title=title, caption=caption or None, title_justify="left", caption_justify="left")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="left" if index < 2 else "right", no_wrap=index < 2)
    for row in rows:
        table.add_row(*row)
    return table


def times(ratio: float | None) -> str:
    """A ratio, if there is one."""
    return "–" if ratio is None else f"{ratio:.2f}×"
