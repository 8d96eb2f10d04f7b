"""A bar for anything that takes more than a few seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def counting(label: str, total: int | None, quiet: bool = False) -> Iterator[Callable[[int], object]]:
    """A bar for any job that can say how much more it has done; nothing is drawn without a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # only who draws pays for what drawing needs
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(show_speed=True))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=total)
        yield lambda amount: bar.advance(task, amount)
