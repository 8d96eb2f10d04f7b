"""How well signals that need no trees choose a model: rank correlation with F1 over the models of `results/choice/`.

NAME.json          what `prpn evaluate TREEBANK --model … --json` prints of many models: F1, how far each agrees with
                   the others, depth and leaning of its trees, and the held-out loss of its training
NAME.judged.json   what `prpn judge TEXT --model … --json` prints of the same: the share of stretches between marks

    ρ = correlation of the ranks of a signal with the ranks of F1 (Spearman); ties share their mean rank
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prpn.errors import InputError

PROTOCOL = "kim"
PLAIN = "unbiased"
"""The builder that gives nothing away."""
SIGNALS: dict[str, Callable[[dict[str, Any], str], float]] = {
    "lower held-out loss": lambda record, name: -record["models"][name]["held_out_loss"],
    "more stretches found, same builder": lambda record, name: record["judged"][name]["model"][record["builder"]],
    f"more stretches found, `{PLAIN}`": lambda record, name: record["judged"][name]["model"][PLAIN],
    "more agreement with the others": lambda record, name: record["agreement"][name],
    "deeper trees": lambda record, name: record["diagnostics"][name]["mean_depth"],
    "more overlap with right branching": lambda record, name: record["diagnostics"][name]["right_overlap"],
}
"""Greater is taken for better."""


def choice_table(results: Path) -> str:
    """One row a signal and record: its rank correlation with F1, and F1 of the model that it would choose."""
    heads = ("models", "signal", "ρ with F1", "F1 of its choice", "best F1", "mean F1")
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for path in sorted((results / "choice").glob("*.judged.json")):
        name = path.name.removesuffix(".judged.json")
        record = _evaluated_and_judged(path.with_name(f"{name}.json"), path)
        models = [model for model, about in record["models"].items() if about["held_out_loss"] is not None]
        f1 = [record["systems"][model][PROTOCOL]["f1"] for model in models]
        for signal, value_of in SIGNALS.items():
            values = [value_of(record, model) for model in models]
            figures = (rank_correlation(values, f1), f1[int(np.argmax(values))], max(f1), float(np.mean(f1)))
            rows.append(f"| {len(models)}, `{name}` | {signal} | {' | '.join(f'{each:.2f}' for each in figures)} |")
    return "\n".join(rows)


def _evaluated_and_judged(evaluated: Path, judged: Path) -> dict[str, Any]:
    """The evaluation of some models with their judgements beside it, which must be of the same models."""
    if not evaluated.is_file():
        raise InputError(str(evaluated), "no such file", f"{judged.name} needs the evaluation of the same models")
    record: dict[str, Any] = json.loads(evaluated.read_text(encoding="utf-8"))
    record["judged"] = json.loads(judged.read_text(encoding="utf-8"))["models"]
    for name in record["models"]:
        shares = record["judged"].get(name, {"model": ()})["model"]
        if missing := {record["builder"], PLAIN} - set(shares):
            cause = f"{name} was not judged through {missing.pop()}"
            raise InputError(str(judged), cause, "judge all models anew, through every builder")
    return record


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's ρ."""
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[place]
