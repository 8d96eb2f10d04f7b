"""Training step, side by side: the step-by-step formulation, this package with kernels off and on, and torch.nn.LSTM.

The contenders take turns in one process, so that a noisy machine troubles all of them alike; what counts is the ratio
of their median times. Run with `make bench`, or `python -m benchmarks.training_step --sizes parsing --rounds 5`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from prpn.config import ModelConfig
from prpn.model import PRPN
from prpn.training.record import machine, peak_memory_gib
from tests.reference.model import run as step_by_step


@dataclasses.dataclass(frozen=True)
class Size:
    """One row of the comparison."""

    config: ModelConfig
    vocabulary: int
    batch: int
    steps: int


SIZES = {
    "parsing": Size(ModelConfig(embedding=200, hidden=400), 10_000, 64, 25),
    "ptb-word": Size(ModelConfig(embedding=800, hidden=1200), 10_000, 64, 35),
    "ptb-char": Size(
        ModelConfig(embedding=128, hidden=1024, tied=False, residual_blocks=1, lookback=10, memory_slots=20),
        50,
        64,
        100,
    ),
}


class PlainLstm(nn.Module):
    """torch.nn.LSTM of the same sizes with the same output."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        config = size.config
        self.embedding = nn.Embedding(size.vocabulary, config.embedding)
        self.lstm = nn.LSTM(config.embedding, config.hidden, config.layers)
        self.output = nn.Linear(config.hidden, config.embedding)
        self.decoder = nn.Linear(config.embedding, size.vocabulary)
        if config.tied:
            self.decoder.weight = self.embedding.weight

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy of a chunk."""
        hidden, _ = self.lstm(self.embedding(inputs))
        logits = self.decoder(torch.tanh(self.output(hidden)))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def contenders(size: Size) -> dict[str, Callable[[], None]]:
    """A training step (forward, backward, clipping, fused Adam) of each contender, dropout off."""
    inputs = torch.randint(size.vocabulary, (size.steps, size.batch))
    targets = torch.randint(size.vocabulary, (size.steps, size.batch))
    torch.manual_seed(1)
    network, lstm = PRPN(size.config, size.vocabulary), PlainLstm(size)
    weights = {name: p.detach().clone().requires_grad_() for name, p in network.named_parameters()}
    statistics_ = dict(network.named_buffers())

    def step(loss: Callable[[], Tensor], parameters: list[Tensor]) -> Callable[[], None]:
        optimizer = torch.optim.Adam(parameters, lr=1e-4, fused=True)

        def once() -> None:
            optimizer.zero_grad(set_to_none=True)
            loss().backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()

        return once

    def by_steps() -> Tensor:
        tied = {"decoder.weight": weights["embedding.weight"]} if size.config.tied else {}
        result = step_by_step(size.config, {**weights, **statistics_, **tied}, inputs, training=True)
        return F.cross_entropy(result.logits.flatten(0, 1), targets.flatten())

    def ours(kernels: str) -> Callable[[], Tensor]:
        def loss() -> Tensor:
            os.environ["PRPN_KERNELS"] = kernels
            return network.loss(network(inputs), targets)

        return loss

    parameters: list[Tensor] = list(network.parameters())
    return {
        "step by step": step(by_steps, list(weights.values())),
        "prpn, kernels off": step(ours("off"), parameters),
        "prpn, kernels torch": step(ours("torch"), parameters),
        "nn.LSTM": step(lambda: lstm.loss(inputs, targets), list(lstm.parameters())),
    }


def measure(size: Size, rounds: int) -> dict[str, float]:
    """Median seconds of a step of each contender, after one step to warm up."""
    steps = contenders(size)
    times: dict[str, list[float]] = {name: [] for name in steps}
    for index in range(rounds + 1):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if index:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    """Measure, print a table, write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["parsing"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    arguments = parser.parse_args()
    figures = {name: measure(SIZES[name], arguments.rounds) for name in arguments.sizes}
    table = Table(title="training step, ratios of median times")
    for heading in ("size", "contender", "tokens/s", "times the step-by-step formulation"):
        table.add_column(heading)
    for name, seconds in figures.items():
        tokens = SIZES[name].batch * SIZES[name].steps
        for contender, value in seconds.items():
            table.add_row(name, contender, f"{tokens / value:,.0f}", f"{seconds['step by step'] / value:.2f}×")
    Console().print(table)
    if arguments.json:
        result = {"seconds_a_step": figures, "machine": machine(), "peak_memory_gib": round(peak_memory_gib(), 2)}
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
