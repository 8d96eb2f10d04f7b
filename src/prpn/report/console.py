"""Where tables are printed, and as wide as they need."""

from __future__ import annotations

from rich.console import Console

PLAIN_WIDTH = 132
"""Columns where there is no terminal: enough for two names of twenty letters and five intervals from −100 to 100."""


def console_for_tables(console: Console | None = None) -> Console:
    """Standard output, or the console given; of a fixed width where it is no terminal."""
    out = console or Console(highlight=False, emoji=False)
    return out if out.is_terminal else Console(highlight=False, emoji=False, width=PLAIN_WIDTH, file=out.file)
