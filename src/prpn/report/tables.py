"""Tables made from the records in results/, so that no number in the README is typed by hand.

    python -m prpn.report.tables README.md results     rewrites what stands between the markers

A record with `systems` is an evaluation of trees, as `prpn evaluate --json` prints it; any other is a training run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from prpn.text.atomic import replacing

RUNS, TREES = "results", "trees"
"""Names of the parts that are generated."""
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
    """One row a system of a recorded evaluation: F1 by protocol, with the interval."""
    records = [(name, record) for name, record in _records(folder) if "systems" in record]
    protocols = list(next(iter(records[0][1]["systems"].values()))) if records else []
    rows = [f"| evaluation | builder | system | {' | '.join(protocols)} |", "|---" * (3 + len(protocols)) + "|"]
    for name, record in records:
        for system, figures in record["systems"].items():
            if system in CONTROLS or system in record["differences"]:
                cells = [f"{f['f1']:.2f} ({f['low']:.1f}–{f['high']:.1f})" for f in figures.values()]
                place = f"[{name}](results/{name}.json)"
                rows.append(f"| {place} | {record['builder']} | {system} | {' | '.join(cells)} |")
    return "\n".join(rows)


def with_tables(text: str, folder: Path) -> str:
    """The text with the tables between their markers."""
    for name, table in ((RUNS, results_table(folder)), (TREES, trees_table(folder))):
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        if begin in text:
            before, _, rest = text.partition(begin)
            text = f"{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    return text


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
    page, results = Path(sys.argv[1]), Path(sys.argv[2])
    content = with_tables(page.read_text(encoding="utf-8"), results)
    with replacing(page) as file:
        file.write(content.encode())
