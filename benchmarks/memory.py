"""Peak memory of a training step, each contender in a process of its own.

`python -m benchmarks.memory --contender "nn.LSTM fp32" --size parsing` prints the figures of one as JSON.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.contenders import CONTENDERS, STEP_BY_STEP, TWIN, available_contenders, training_step
from benchmarks.processes import run_python
from benchmarks.sizes import SIZES, Size
from benchmarks.tables import table_of, times
from prpn.training.process import keep_freed_memory

STEPS = 2  # the second has the optimiser's moments beside everything else


def measure(size: str, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Peak memory in MiB of each contender."""
    names = available_contenders() if names is None else names
    figures = {name: _in_own_process(name, size) for name in names}
    for share, reference in (("share_of_twin", TWIN), ("share_of_step_by_step", STEP_BY_STEP)):
        whole = figures[reference]["growth_mib"] if reference in figures else 0
        for row in figures.values():
            row[share] = round(row["growth_mib"] / whole, 3) if whole else None
    return figures


def tables(figures: dict[str, dict[str, Any]]) -> Iterable[Table]:
    """All sizes in one table."""
    yield table_of(
        "peak memory of training, MiB",
        ("size", "contender", "whole process", "above a tiny model", "of the twin", "of step by step"),
        (
            (
                size,
                name,
                f"{row['peak_mib']:,}",
                f"{row['growth_mib']:,}",
                times(row["share_of_twin"]),
                times(row["share_of_step_by_step"]),
            )
            for size, result in figures.items()
            for name, row in result.items()
        ),
        "above a tiny model: without what Python and the libraries take; with weights, gradients and moments",
    )


def _in_own_process(name: str, size: str) -> dict[str, Any]:
    out, _ = run_python(["-m", "benchmarks.memory", "--contender", name, "--size", size])
    return dict(json.loads(out))


def _resident() -> tuple[int, int]:
    """Resident memory of this process in MiB: now, and at most so far.

    Not from getrusage, whose maximum is handed down from the process that started this one.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    now, peak = (re.search(rf"^{field}:\s*(\d+) kB", status, re.MULTILINE) for field in ("VmRSS", "VmHWM"))
    assert now is not None
    assert peak is not None
    return int(now[1]) // 1024, int(peak[1]) // 1024


def main() -> None:
    """Take a few training steps and say how much memory they took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__.partition("\n")[0])
    parser.add_argument("--contender", choices=CONTENDERS, required=True)
    parser.add_argument("--size", choices=SIZES, required=True)
    arguments = parser.parse_args()
    if not CONTENDERS[arguments.contender].usual_allocator:
        keep_freed_memory()
    _take_steps(arguments.contender, SIZES["tiny"])  # libraries load what they need at first use
    before, _ = _resident()
    _take_steps(arguments.contender, SIZES[arguments.size])
    _, peak = _resident()
    print(json.dumps({"peak_mib": peak, "growth_mib": peak - before}))


def _take_steps(name: str, size: Size) -> None:
    step = training_step(CONTENDERS[name], size)
    for _ in range(STEPS):
        step()


if __name__ == "__main__":
    main()
