"""Tables made from the records in results/, so that no number on a page is typed by hand.

    python -m prpn.report.tables PAGE… results     rewrites what stands between the markers

A record with `systems` is an evaluation of trees, as `prpn evaluate --json` prints it; any other is a training run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prpn.text.atomic import replacing
from prpn.trees.protocols import PROTOCOLS

CONTROLS = ("right", "random-distances")
"""Baselines that stand beside the models in the README; all are in the record."""


def results_table(folder: Path) -> str:
    """One row a recorded run: what was run, what came out, at what cost."""
    rows = [
        "| run | validation perplexity | bits per character | steps | time | memory | ended | seed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*rows, *(_row(name, record) for name, record in _records(folder) if "systems" not in record)])


def trees_table(folder: Path) -> str:
    """One row a system of a recorded evaluation: F1 by protocol with its interval, beside the two controls."""
    return _scores(folder, lambda name, record: record["differences"] and name in {*CONTROLS, *record["differences"]})


def baselines_table(folder: Path) -> str:
    """The evaluations in which no model took part."""
    return _scores(folder, lambda name, record: not record["differences"])


PARTS = {"results": results_table, "trees": trees_table, "baselines": baselines_table}
"""What stands between `<!-- NAME: begin -->` and `<!-- NAME: end -->`."""


def with_tables(text: str, folder: Path) -> str:
    """The text with the tables between their markers."""
    for name, table in PARTS.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        if begin in text:
            before, _, rest = text.partition(begin)
            text = f"{before}{begin}\n{table(folder)}\n{end}{rest.partition(end)[2]}"
    return text


def _scores(folder: Path, is_shown: Callable[[str, dict[str, Any]], object]) -> str:
    rows = [f"| record | builder | system | {' | '.join(PROTOCOLS)} |", "|---" * (3 + len(PROTOCOLS)) + "|"]
    for name, record in _records(folder):
        for system, figures in record.get("systems", {}).items():
            if is_shown(system, record):
                found = [figures.get(protocol) for protocol in PROTOCOLS]
                cells = [f"{f['f1']:.2f} ({f['low']:.1f}–{f['high']:.1f})" if f else "" for f in found]
                rows.append(f"| `{name}` | {record['builder']} | {system} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _records(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    return [(path.stem, json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.json"))]


def _row(name: str, record: dict[str, Any]) -> str:
    validation = record["validation"]
    return (
        f"| [{name}](results/{name}.json) | {validation['perplexity']:.2f} | {validation['bits_per_character']:.4f} "
        f"| {record['steps']:,} | {record['seconds'] / 60:.1f} min | {record['peak_memory_gib']:.2f} GiB "
        f"| {record['finished']} | {record['recipe']['training']['seed']} |"
    )


if __name__ == "__main__":
    *pages, results = map(Path, sys.argv[1:])
    for page in pages:
        content = with_tables(page.read_text(encoding="utf-8"), results)
        with replacing(page) as file:
            file.write(content.encode())
