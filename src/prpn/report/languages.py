"""Models of other languages through each builder, beside random distances through it and the other baselines."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from prpn.config import Builder
from prpn.report.reproduction import value_words, with_spread
from prpn.reproduction.experiments import load_experiments
from prpn.reproduction.recorded import gather

LANGUAGES = ("icelandic", "faroese", "japanese")
"""Experiments with models and a student of one of them."""
BASELINES = ("left", "right", "balanced", "upper")


def languages_table(results: Path) -> str:
    """One row a language: mean over seeds ± their standard deviation; in brackets the control; then one student."""
    heads = ("language", *(f"`{builder}`" for builder in get_args(Builder)), "judged", "student", *BASELINES)
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    known, recorded = load_experiments(), gather(results)
    for name in LANGUAGES:
        figures = {(figure.system, figure.builder): figure for figure in known[name].figures}
        models = [
            f"{with_spread(recorded[name], figures['PRPN', builder])} "
            f"({value_words(recorded[name].value(figures['random-distances', builder]), 'f1')})"
            for builder in get_args(Builder)
        ]
        chosen = (figures["PRPN", "judged"], figures["student", "own"])
        models += [with_spread(recorded[name], figure) for figure in chosen]
        others = [value_words(recorded[name].value(figures[baseline, "paper"]), "f1") for baseline in BASELINES]
        rows.append(f"| {' | '.join([name.capitalize(), *models, *others])} |")
    return "\n".join(rows)
