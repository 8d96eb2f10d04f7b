"""`python -m benchmarks`: measure, print tables, write the figures with all that is needed to repeat them.

Without names everything is measured, which takes some twenty minutes on two cores.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy
import torch
from rich.console import Console
from rich.table import Table

from benchmarks import evaluation, growth, library, memory, parsing, startup, training
from benchmarks.sizes import FULL_SIZES, SIZES
from prpn import __version__, kernels, provenance
from prpn.text.atomic import replacing
from prpn.training.process import keep_freed_memory, return_freed_memory

PATIENCE = 50.0
"""Seconds after which a contender sits out further rounds of a size."""
QUIET = 0.5
"""Load of a machine that does little else."""
ENVIRONMENT = ("OMP_WAIT_POLICY", "OMP_NUM_THREADS", "GOMP_SPINCOUNT", "MKL_NUM_THREADS", "PRPN_KERNELS")
TABLES: dict[str, Callable[[dict[str, Any]], Iterable[Table]]] = {
    "training": training.tables,
    "evaluation": evaluation.tables,
    "memory": memory.tables,
    "parsing": parsing.tables,
    "library": library.tables,
    "startup": startup.tables,
    "growth": growth.tables,
}


def main(words: Sequence[str] | None = None) -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to measure: {', '.join(TABLES)} (default: all)")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=FULL_SIZES, help="of training, evaluation, memory")
    parser.add_argument("--rounds", type=int, default=5, help="turns that each contender takes")
    parser.add_argument("--sentences", type=int, default=parsing.SENTENCES, help="of the text that is parsed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw how the cost of a step grows")
    arguments = parser.parse_args(words)
    names = arguments.names or list(TABLES)
    if unknown := [name for name in names if name not in TABLES]:
        parser.error(f"{', '.join(unknown)}: choose from {', '.join(TABLES)}")
    if arguments.rounds < 1 or arguments.sentences < 1:
        parser.error("--rounds and --sentences: give 1 or more")
    if arguments.plot and "growth" not in names:
        parser.error("--plot needs growth to be measured")
    console = Console()
    gc.collect()
    gc.freeze()  # as the trainer does, for all contenders
    figures = conditions(words)
    if (load := figures["machine"]["load_before"]) > QUIET:
        console.print(f"Other work is running here (load {load}): what follows is noisy.", style="yellow")
    for name in names:
        figures[name] = measured(name, arguments)
        for table in TABLES[name](figures[name]):
            console.print(table)
        if arguments.json:
            _write(arguments.json, json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
        return_freed_memory()
    if arguments.plot:
        _write(arguments.plot, growth.plot(figures["growth"]))


def measured(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The figures of one benchmark."""
    rounds, sizes = arguments.rounds, arguments.sizes
    few = min(3, rounds)
    match name:
        case "training":
            return {size: training.measure(SIZES[size], rounds, PATIENCE) for size in sizes}
        case "evaluation":
            return {size: evaluation.measure(SIZES[size], few, PATIENCE) for size in sizes}
        case "memory":
            return {size: memory.measure(size) for size in sizes}
        case "parsing":
            return parsing.measure(arguments.sentences, few)
        case "library":
            return library.measure(arguments.sentences, few)
        case "startup":
            return startup.measure(rounds)
        case _:
            return growth.measure(few)


def conditions(words: Sequence[str] | None) -> dict[str, Any]:
    """What the figures depend on besides the code that is measured."""
    return {
        "command": shlex.join(["python", "-m", "benchmarks", *(sys.argv[1:] if words is None else words)]),
        "commit": provenance.commit(),
        "machine": {
            **provenance.machine(),
            "threads": torch.get_num_threads(),
            "load_before": round(os.getloadavg()[0], 2),
            "kernels": kernels.described(),
        },
        "versions": {"prpn": __version__, "torch": torch.__version__, "numpy": numpy.__version__},
        "settings": {
            "allocator_keeps_freed_memory": keep_freed_memory(),
            **{name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
        },
    }


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(text.encode())


if __name__ == "__main__":
    main()
