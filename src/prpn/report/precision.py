"""bf16 against fp32, as a table made from `results/precision/`: the same runs in both, seed by seed.

    RECIPE-fp32-SEED.json, RECIPE-bf16-SEED.json     records of training runs
    trees.json                                       `prpn evaluate --json` of the quick-parsing models among them

What bf16 costs is the mean of the differences between runs of the same seed, with its standard error; what seeds cost
is the standard deviation of the fp32 runs.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from pathlib import Path

PROTOCOL = "kim"


def precision_table(folder: Path) -> str:
    """One row a measure: every seed in fp32 and bf16, what bf16 costs, and how far seeds are apart."""
    runs = folder / "precision"
    trees = json.loads((runs / "trees.json").read_text(encoding="utf-8"))["systems"]

    def loss(name: str) -> float:
        return float(json.loads((runs / f"{name}.json").read_text(encoding="utf-8"))["validation"]["loss"])

    def f1(name: str) -> float:
        return float(trees[name][PROTOCOL]["f1"])

    measures: list[tuple[str, str, Callable[[str], float], int]] = [
        ("quick-word", "held-out nats a token", loss, 3),
        ("quick-parsing", "held-out nats a token", loss, 3),
        ("quick-parsing", f"F1, `{PROTOCOL}`", f1, 1),
    ]
    rows = ["| recipe | measure | fp32 | bf16 | bf16 − fp32 | spread of seeds |", "|---" * 6 + "|"]
    for recipe, measure, value, digits in measures:
        seeds = sorted(path.stem.rpartition("-")[2] for path in runs.glob(f"{recipe}-fp32-*.json"))
        exact, rounded = ([value(f"{recipe}-{kind}-{seed}") for seed in seeds] for kind in ("fp32", "bf16"))
        differences = [b - a for a, b in zip(exact, rounded, strict=True)]
        error = statistics.stdev(differences) / len(seeds) ** 0.5
        cells = (
            recipe,
            measure,
            *(", ".join(f"{number:.{digits}f}" for number in side) for side in (exact, rounded)),
            f"{statistics.mean(differences):+.{digits}f} ± {error:.{digits}f}",
            f"{statistics.stdev(exact):.{digits}f}",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)
