"""Start-up: what `prpn --help` and parsing one line take, and whether they import torch."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.table import Table

from benchmarks.parsing import make_model
from benchmarks.processes import run_python
from benchmarks.tables import table_of
from benchmarks.timing import alternate, rounded

LINE = "the old man sat on the bench\n"
TORCH = re.compile(r"\| +torch$", re.MULTILINE)  # in the listing of `python -X importtime`


def measure(rounds: int = 5) -> dict[str, Any]:
    """Seconds of each command in a process of its own, beside those of Python alone."""
    with TemporaryDirectory() as name:
        model = Path(name) / "model"
        make_model(model)
        commands = {
            "python alone": ["-c", ""],
            "prpn --help": ["-m", "prpn", "--help"],
            "prpn parse, one line": ["-m", "prpn", "parse", "--model", str(model)],
        }
        seconds = alternate({name: partial(run_python, words, text=LINE) for name, words in commands.items()}, rounds)
        return {
            name: {
                "seconds": rounded(seconds[name], 4),
                "median_seconds": round(statistics.median(seconds[name]), 4),
                "imports_torch": _imports_torch(words),
            }
            for name, words in commands.items()
        }


def tables(figures: dict[str, Any]) -> Iterable[Table]:
    """All in one table."""
    yield table_of(
        "start-up, medians",
        ("command", "imports torch", "seconds"),
        (
            (name, "yes" if row["imports_torch"] else "no", f"{row['median_seconds']:.3f}")
            for name, row in figures.items()
        ),
    )


def _imports_torch(words: Sequence[str]) -> bool:
    _, listing = run_python(["-X", "importtime", *words], text=LINE)
    return TORCH.search(listing) is not None
