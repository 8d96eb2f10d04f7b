"""Golden vectors: three tiny models of the `released` flavour with all they compute, in float64.

Tokens are (23, 3); chunk k reads tokens[11k : 11k + 11] and is scored on the tokens one later. The state starts at
zero, is carried from the first chunk to the second, and is detached between; the loss of a chunk is its mean
cross-entropy, and gradients are those of the sum of the two losses.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from prpn.config import ModelConfig

FOLDER = Path(__file__).parent / "golden"
NAMES = ("word", "char", "soft")
CHUNK = 11
CHUNKS = 2


@dataclass(frozen=True)
class Golden:
    """One case."""

    config: ModelConfig
    weights: dict[str, Tensor]
    """By name, statistics included; with tied weights `decoder.weight` is the very tensor of `embedding.weight`."""
    tokens: Tensor
    """(23, 3)"""
    numbers: dict[str, Tensor]
    """By key, such as `eval/0/logits`, `train/gradients/decoder.bias`, `train/after/parsing.norm.running_var`."""

    def chunk(self, index: int) -> tuple[Tensor, Tensor]:
        """Inputs and targets (11, 3) of a chunk."""
        start = index * CHUNK
        return self.tokens[start : start + CHUNK], self.tokens[start + 1 : start + CHUNK + 1]

    def under(self, prefix: str) -> dict[str, Tensor]:
        """The numbers whose key starts with `prefix/`, by the rest of their key."""
        return {key[len(prefix) + 1 :]: n for key, n in self.numbers.items() if key.startswith(f"{prefix}/")}


def load(name: str) -> Golden:
    """A case by its name, freshly read."""
    sizes = json.loads((FOLDER / "cases.json").read_text(encoding="utf-8"))[name]
    config = ModelConfig(
        flavour="released",
        embedding=sizes["ninp"],
        hidden=sizes["nhid"],
        layers=sizes["nlayers"],
        residual_blocks=sizes["res"],
        tied=sizes["tie_weights"],
        lookback=sizes["nlookback"],
        temperature=1 / sizes["resolution"],
        memory_slots=sizes["nslots"],
        gates="hard" if sizes["hard"] else "soft",
    )
    with np.load(FOLDER / f"{name}.npz") as file:
        numbers = {key: torch.from_numpy(file[key]) for key in file.files}
    tokens = numbers.pop("tokens")
    weights = {key.removeprefix("weights/"): numbers.pop(key) for key in list(numbers) if key.startswith("weights/")}
    if config.tied:
        assert torch.equal(weights["decoder.weight"], weights["embedding.weight"])
        weights["decoder.weight"] = weights["embedding.weight"]
    return Golden(config, weights, tokens, numbers)
