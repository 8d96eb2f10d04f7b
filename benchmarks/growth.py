"""How the cost of a training step grows with the length of the text, the batch, the slots and the vocabulary."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table

from benchmarks.contenders import STEP_BY_STEP, fastest_fp32, training_steps
from benchmarks.plot import Panel, line_plots
from benchmarks.sizes import Size
from benchmarks.tables import table_of
from benchmarks.timing import alternate, rounded
from prpn.config import ModelConfig

BASE = Size(ModelConfig(embedding=100, hidden=200), vocabulary=5_000, batch=32, steps=20)
AXES: dict[str, Sequence[int]] = {
    "time steps": (10, 20, 40, 80),
    "batch": (8, 16, 32, 64, 128),
    "memory slots": (4, 8, 16, 32, 64),
    "vocabulary": (1_000, 4_000, 16_000, 64_000),
}


def sized(axis: str, value: int) -> Size:
    """The base with another value on one axis."""
    replace = dataclasses.replace
    match axis:
        case "time steps":
            return replace(BASE, steps=value)
        case "batch":
            return replace(BASE, batch=value)
        case "vocabulary":
            return replace(BASE, vocabulary=value)
        case _:
            return replace(BASE, config=replace(BASE.config, memory_slots=value))


def measure(rounds: int = 3) -> dict[str, Any]:
    """Median seconds of a step along each axis, and the exponent with which they grow."""
    names = (STEP_BY_STEP, fastest_fp32())
    figures: dict[str, Any] = {}
    for axis, values in AXES.items():
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for value in values:
            taken = alternate(training_steps(sized(axis, value), names), rounds)
            for name in names:
                seconds[name].append(statistics.median(taken[name]))
        figures[axis] = {
            "values": list(values),
            "seconds": {name: rounded(taken) for name, taken in seconds.items()},
            "exponent": {name: round(exponent(values, taken), 3) for name, taken in seconds.items()},
        }
    return figures


def exponent(values: Sequence[float], seconds: Sequence[float]) -> float:
    """p of seconds ~ valueᵖ, by least squares over logarithms."""
    return statistics.linear_regression([math.log(v) for v in values], [math.log(s) for s in seconds]).slope


def tables(figures: dict[str, Any]) -> Iterable[Table]:
    """One row for each axis and contender."""
    yield table_of(
        "training step, milliseconds",
        ("axis", "contender", "smallest", "largest", "power"),
        (
            (
                f"{axis} {result['values'][0]:,} … {result['values'][-1]:,}",
                name,
                f"{1000 * seconds[0]:,.0f}",
                f"{1000 * seconds[-1]:,.0f}",
                f"{result['exponent'][name]:.2f}",
            )
            for axis, result in figures.items()
            for name, seconds in result["seconds"].items()
        ),
        "power 1: twice as much takes twice as long; 0: it does not matter",
    )


def plot(figures: dict[str, Any]) -> str:
    """The curves as SVG, one panel an axis."""
    panels = [
        Panel(
            axis,
            {
                name: [(value, 1000 * taken) for value, taken in zip(result["values"], seconds, strict=True)]
                for name, seconds in result["seconds"].items()
            },
        )
        for axis, result in figures.items()
    ]
    return line_plots("milliseconds of a training step", panels)
