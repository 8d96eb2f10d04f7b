"""Tables made from the recorded runs in results/, so that no number in the README is typed by hand.

python -m prpn.report.tables README.md results     rewrites what stands between the two markers
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from prpn.text.atomic import replacing

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def results_table(folder: Path) -> str:
    """One row a recorded run: what was run, what came out, at what cost."""
    rows = [
        "| run | validation perplexity | bits per character | steps | time | memory | ended | seed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    rows += [_row(path.stem, json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.json"))]
    return "\n".join(rows)


def with_results(text: str, table: str) -> str:
    """The text with the table between its markers."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def _row(name: str, record: dict[str, Any]) -> str:
    validation = record["validation"]
    return (
        f"| [{name}](results/{name}.json) | {validation['perplexity']:.2f} | {validation['bits_per_character']:.4f} "
        f"| {record['steps']:,} | {record['seconds'] / 60:.1f} min | {record['peak_memory_gib']:.2f} GiB "
        f"| {record['finished']} | {record['recipe']['training']['seed']} |"
    )


if __name__ == "__main__":
    page, results = Path(sys.argv[1]), Path(sys.argv[2])
    content = with_results(page.read_text(encoding="utf-8"), results_table(results))
    with replacing(page) as file:
        file.write(content.encode())
