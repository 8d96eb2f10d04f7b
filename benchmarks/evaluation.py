"""Scoring a text as one stream, the way perplexity is reported: tokens a second of each contender."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from rich.table import Table

from benchmarks import step_by_step
from benchmarks.contenders import CONTENDERS, STEP_BY_STEP, Package, available_contenders, kernels_set
from benchmarks.sizes import Size
from benchmarks.tables import table_of, times
from benchmarks.timing import alternate, rounded
from prpn.model import PRPN
from prpn.text.batches import StreamBatches
from prpn.training.evaluate import CHUNK, on_device, token_losses

TOKENS = 4 * CHUNK
"""Of the text that is scored."""


def measure(size: Size, rounds: int, patience: float = math.inf) -> dict[str, Any]:
    """Figures of one size: every contender scores the same drawn text with the same weights."""
    torch.manual_seed(1)
    network = PRPN(size.config, size.vocabulary).eval()
    weights = {**dict(network.named_parameters()), **dict(network.named_buffers())}
    batches = StreamBatches(torch.randint(size.vocabulary, (TOKENS,)).numpy(), 1, CHUNK, start_token=0, once=True)
    nats: dict[str, float] = {}

    def by_steps() -> None:
        nats[STEP_BY_STEP] = _nats_step_by_step(size, weights, batches)

    def by_package(name: str) -> None:
        with kernels_set(CONTENDERS[name].kernels):
            nats[name] = sum(losses.sum().item() for losses in token_losses(network, batches, torch.device("cpu")))

    actions: dict[str, Callable[[], None]] = {STEP_BY_STEP: by_steps}
    for name in available_contenders():
        if CONTENDERS[name].learner is Package:
            actions[name] = partial(by_package, name)
    seconds = alternate(actions, rounds, patience)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return {
        name: {
            "seconds": rounded(seconds[name]),
            "tokens_per_second": round(TOKENS / median, 1),
            "times_step_by_step": round(medians[STEP_BY_STEP] / median, 3),
            "nats_a_token": nats[name] / TOKENS,
        }
        for name, median in medians.items()
    }


def tables(figures: dict[str, dict[str, Any]]) -> Iterable[Table]:
    """All sizes in one table."""
    yield table_of(
        "scoring text as one stream, medians",
        ("size", "contender", "tokens/s", "× step by step", "nats a token"),
        (
            (
                size,
                name,
                f"{row['tokens_per_second']:,.0f}",
                times(row["times_step_by_step"]),
                f"{row['nats_a_token']:.4f}",
            )
            for size, result in figures.items()
            for name, row in result.items()
        ),
        f"{TOKENS:,} drawn tokens in chunks of {CHUNK}",
    )


@torch.no_grad()
def _nats_step_by_step(size: Size, weights: step_by_step.Weights, batches: StreamBatches) -> float:
    nats, memory = 0.0, None
    for index in range(len(batches)):
        inputs, targets, _ = on_device(batches[index], torch.device("cpu"))
        logits, memory = step_by_step.run(size.config, weights, inputs, memory, training=False)
        nats += F.cross_entropy(logits, targets.flatten(), reduction="sum").item()
    return nats
