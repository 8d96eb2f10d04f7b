"""Parsing from Python beside the command, in turns: the same raw text and the embedded model.

    command          prpn parse FILE --out FILE, a process of its own, start-up included
    parse_file       from file to file
    pipe, strings    from a list of strings to strings
    BatchParser      from lists of strings to arrays, five thousand sentences at a time
    pipe, trees      from a list of strings to Tree objects

All but the command have read their model before, and met the words.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.table import Table

import prpn
from benchmarks.parsing import SENTENCES, drawn_sentences, unsplit
from benchmarks.processes import run_python
from benchmarks.tables import table_of, times
from benchmarks.timing import alternate, rounded

BATCH = 5000


def measure(sentences: int = SENTENCES, rounds: int = 3) -> dict[str, Any]:
    """Seconds and sentences a second of each way, and whether all give the same trees."""
    lines = [unsplit(line) for line in drawn_sentences(sentences)]
    model, batches = prpn.load(), prpn.BatchParser()
    with TemporaryDirectory() as name:
        text, command, own = (Path(name, part) for part in ("text", "command.trees", "own.trees"))
        text.write_text("\n".join(lines) + "\n", encoding="utf-8")

        def arrays() -> Iterator[int]:
            for first in range(0, len(lines), BATCH):
                yield len(batches.spans(lines[first : first + BATCH]))

        actions: dict[str, Callable[[], object]] = {
            "command": lambda: run_python(["-m", "prpn", "parse", str(text), "--out", str(command)]),
            "parse_file": lambda: model.parse_file(text, own),
            "pipe, strings": lambda: sum(1 for _ in model.pipe(lines, form="brackets")),
            "BatchParser": lambda: sum(arrays()),
            "pipe, trees": lambda: sum(1 for _ in model.pipe(lines)),
        }
        seconds = alternate(actions, rounds)
        same = command.read_bytes() == own.read_bytes() == _joined(model.pipe(lines, form="brackets"))
    words = sum(len(line.split()) for line in lines)
    return {"sentences": len(lines), "chunks": words, "same_trees": same} | {
        "seconds": {name: rounded(taken) for name, taken in seconds.items()}
    }


def tables(figures: dict[str, Any]) -> Iterable[Table]:
    """All in one table."""
    medians = {name: statistics.median(taken) for name, taken in figures["seconds"].items()}
    yield table_of(
        f"parsing from Python, {figures['sentences']:,} sentences, medians",
        ("way", "seconds", "sentences/s", "× command"),
        (
            (name, f"{taken:.2f}", f"{figures['sentences'] / taken:,.0f}", times(medians["command"] / taken))
            for name, taken in medians.items()
        ),
        caption="all give the same trees" if figures["same_trees"] else "NOT the same trees",
    )


def _joined(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
