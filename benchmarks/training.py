"""Training step: tokens a second of each contender, its ratio to others, and its share of what products could do."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from rich.table import Table

from benchmarks.contenders import CONTENDERS, STEP_BY_STEP, TWIN, UNTUNED, Lstm, available_contenders, training_steps
from benchmarks.sizes import Size
from benchmarks.tables import table_of, times
from benchmarks.timing import alternate, best_gigaflops, gigaflops, rounded

TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
CUBE = 2048
FORWARD_AND_BACKWARD = 3


def measure(size: Size, rounds: int, patience: float = math.inf, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Figures of one size; see `timing.alternate` for patience."""
    names = available_contenders() if names is None else names
    ceilings = {precision: ceiling(size, precision) for precision in TYPES}
    best = {precision: max(speeds.values()) for precision, speeds in ceilings.items()}
    best["bf16"] = max(best.values())  # where a processor has no bf16, fp32 is the faster way to the same numbers
    seconds = alternate(training_steps(size, names), rounds, patience)
    medians = {name: statistics.median(values) for name, values in seconds.items()}

    def figures(name: str) -> dict[str, Any]:
        contender = CONTENDERS[name]
        lstm = issubclass(contender.learner, Lstm)
        work = FORWARD_AND_BACKWARD * size.tokens * (size.lstm_multiply_adds if lstm else size.multiply_adds)
        speed = gigaflops(work, medians[name])
        return {
            "seconds": rounded(seconds[name]),
            "tokens_per_second": round(size.tokens / medians[name], 1),
            "times_twin": _ratio(medians.get(TWIN), medians[name]),
            "times_untuned": _ratio(medians.get(UNTUNED), medians[name]),
            "times_step_by_step": _ratio(medians.get(STEP_BY_STEP), medians[name]),
            "times_lstm": _ratio(medians.get(contender.reference), medians[name]),
            "gigaflops": round(speed, 1),
            "share_of_ceiling": round(speed / best[contender.precision], 4),
        }

    return {
        "tokens_a_step": size.tokens,
        "multiply_adds_a_token": {"prpn": size.multiply_adds, "nn.LSTM": size.lstm_multiply_adds},
        "ceiling_gigaflops": ceilings,
        "contenders": {name: figures(name) for name in names},
    }


def ceiling(size: Size, precision: str) -> dict[str, float]:
    """Billions of operations a second of torch.mm alone, on a cube and on the largest products of the size."""
    products = {f"{CUBE}³": (CUBE, CUBE, CUBE), **size.largest_products}
    speeds = {}
    for name, (rows, inner, columns) in products.items():
        left = torch.randn(rows, inner).to(TYPES[precision])
        right = torch.randn(inner, columns).to(TYPES[precision])
        result = torch.empty(rows, columns, dtype=TYPES[precision])

        def product(left: Any = left, right: Any = right, result: Any = result) -> None:
            torch.mm(left, right, out=result)

        speeds[name] = round(best_gigaflops(rows * inner * columns, product), 1)
    return speeds


def tables(figures: dict[str, dict[str, Any]]) -> Iterable[Table]:
    """One table for speed and one for the products, over all sizes."""
    yield table_of(
        "training step, medians",
        (
            "size",
            "contender",
            "tokens/s",
            "× twin",
            "× untuned",
            "× step by step",
            "× its nn.LSTM",
            "of ceiling",
            "rounds",
        ),
        (
            (
                size,
                name,
                f"{row['tokens_per_second']:,.0f}",
                times(row["times_twin"]),
                times(row["times_untuned"]),
                times(row["times_step_by_step"]),
                times(row["times_lstm"]),
                f"{row['share_of_ceiling']:.0%}",
                str(len(row["seconds"])),
            )
            for size, result in figures.items()
            for name, row in result["contenders"].items()
        ),
        "ceiling: the fastest product of the next table, for bf16 of either type",
    )
    yield table_of(
        "torch.mm, GFLOP/s",
        ("size", "product", *TYPES),
        (
            (size, product, *(f"{result['ceiling_gigaflops'][precision][product]:,.0f}" for precision in TYPES))
            for size, result in figures.items()
            for product in result["ceiling_gigaflops"]["fp32"]
        ),
        "; ".join(
            f"{size}: PRPN needs {work['prpn'] / work['nn.LSTM']:.2f}× the multiply-adds of nn.LSTM"
            for size, result in figures.items()
            for work in [result["multiply_adds_a_token"]]
        ),
    )


def _ratio(reference: float | None, seconds: float) -> float | None:
    return None if reference is None else round(reference / seconds, 3)
