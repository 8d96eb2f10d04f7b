"""What each change to a system brought: an experiment whose systems differ from one of them, the base, in one respect.

    difference = mean over seeds − mean of the base,      ± its standard error  √(s²/a + s₀²/b)

s and s₀ are the standard deviations between the a and b seeds. Rows fall by the first figure; what all systems are
measured by are the columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, variance

from prpn.report.reproduction import NOT_RECORDED, value_words
from prpn.reproduction.experiments import Experiment, Figure, load_experiments
from prpn.reproduction.paper import DECIMALS
from prpn.reproduction.recorded import Recorded, gather

Values = Mapping[str, float]
"""By seed."""


def study_table(folder: Path, name: str) -> str:
    """One row a system: its settings, the first figure by seed and against the base, and the mean of all others."""
    experiment, recorded = load_experiments()[name], gather(folder)[name]
    of: dict[str, list[Figure]] = {system: [] for system, kind in experiment.systems.items() if kind.is_model}
    for figure in experiment.figures:
        of.get(figure.system, []).append(figure)
    first, *others = of[experiment.base]
    heads = ("change", "setting", _kind(first), "by seed", "against the base", *map(_kind, others))
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    base = recorded.figures.get(first.label, {})
    for system in sorted(of, key=lambda system: -(recorded.value(of[system][0]) or 0)):
        values = recorded.figures.get(of[system][0].label, {})
        rows.append(f"| {' | '.join(_cells(experiment, system, of[system], values, base, recorded))} |")
    controls = [figure for figure in experiment.figures if figure.system not in experiment.systems]
    through = {figure: figure.builder if figure.system == "random-distances" else "" for figure in controls}
    rows += [
        f"| *{each.system}* | {through[each]} | {value_words(recorded.value(each), each.measure)} |"
        for each in controls
    ]
    return "\n".join(rows)


def _cells(
    experiment: Experiment, system: str, figures: list[Figure], values: Values, base: Values, recorded: Recorded
) -> list[str]:
    first, *others = figures
    decimals = DECIMALS[first.measure]
    return [
        system,
        _setting(experiment, system),
        value_words(recorded.value(first), first.measure),
        ", ".join(f"{value:.{decimals}f}" for value in values.values()) or NOT_RECORDED,
        "" if system == experiment.base else _against(values, base, decimals),
        *(value_words(recorded.value(figure), figure.measure) for figure in others),
    ]


def _against(values: Values, base: Values, decimals: int) -> str:
    if min(len(values), len(base)) < 2:
        return NOT_RECORDED
    difference = fmean(values.values()) - fmean(base.values())
    error = math.sqrt(variance(values.values()) / len(values) + variance(base.values()) / len(base))
    return f"{difference:+.{decimals}f} ± {error:.{decimals}f}"


def _setting(experiment: Experiment, system: str) -> str:
    """The fields in which a system differs from the base."""
    own, base = experiment.systems[system], experiment.systems[experiment.base]
    fields = [each for each in own.set if each not in base.set]
    left_out = [
        each for each in base.set if each.partition("=")[0] not in {other.partition("=")[0] for other in own.set}
    ]
    words = [*(f"`{each}`" for each in fields), *(f"without `{each}`" for each in left_out)]
    return ", ".join(words if own.punctuation == base.punctuation else [*words, "text without punctuation"])


def _kind(figure: Figure) -> str:
    return figure.label.partition(": ")[2]
