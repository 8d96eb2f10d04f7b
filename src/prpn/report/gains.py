"""What each change to a recipe brought, as a table made from `results/gains/`: runs with the same text and steps.

base-SEED.json      the recipe as it was
NAME-SEED.json      the same with one change; which one, its own recipe says
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

from prpn.config import SECTIONS

BASE = "base"


def gains_table(folder: Path) -> str:
    """One row a change: its settings, validation perplexity by seed, and the change of the mean against the base."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for path in sorted((folder / "gains").glob("*.json")):
        runs.setdefault(path.stem.rpartition("-")[0], []).append(json.loads(path.read_text(encoding="utf-8")))
    rows = ["| run | changed | validation perplexity | against the base | steps | time |", "|---" * 6 + "|"]
    base = _mean(runs[BASE])
    for name in sorted(runs, key=lambda name: _mean(runs[name])):
        first, mean = runs[name][0], _mean(runs[name])
        cells = (
            name,
            ", ".join(f"`{each}`" for each in _changes(runs[BASE][0], first)),
            ", ".join(f"{run['validation']['perplexity']:.2f}" for run in runs[name]),
            "" if name == BASE else f"{mean / base - 1:+.1%}",
            f"{first['steps']:,}",
            f"{fmean(run['seconds'] for run in runs[name]) / 60:.0f} min",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _mean(runs: list[dict[str, Any]]) -> float:
    return fmean(run["validation"]["perplexity"] for run in runs)


def _changes(base: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Fields of a recipe that differ, the seed left out."""
    pairs = [(section, key, value) for section in SECTIONS for key, value in other["recipe"][section].items()]
    return [
        f"{section}.{key}={str(value).lower() if isinstance(value, bool) else value}"
        for section, key, value in pairs
        if key != "seed" and base["recipe"][section].get(key) != value
    ]
