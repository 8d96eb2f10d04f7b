"""What the model remembers between two chunks of text: the last embeddings, distances and memory tapes.

A stream cut into chunks gives the same results as the stream in one piece as long as this is handed on.

    # L look-back, N memory slots, B batch, E embedding, H hidden; oldest first
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from prpn.config import ModelConfig


@dataclass(frozen=True)
class State:
    """Carried state of a batch of streams."""

    embeddings: Tensor  # (L, B, E)
    distances: Tensor  # (N, B), +∞ where nothing was read yet
    hidden: Tensor  # (layers, N, B, H)
    cells: Tensor  # (layers, N, B, H)

    @staticmethod
    def zero(config: ModelConfig, batch: int, like: Tensor) -> State:
        """The state before the first token: zero vectors, and distances that close every gate."""
        tape = (config.layers, config.memory_slots, batch, config.hidden)
        return State(
            embeddings=like.new_zeros(config.lookback, batch, config.embedding),
            distances=like.new_full((config.memory_slots, batch), torch.inf),
            hidden=like.new_zeros(tape),
            cells=like.new_zeros(tape),
        )

    @property
    def batch(self) -> int:
        """How many streams this is the state of."""
        return self.distances.shape[1]

    def detach(self) -> State:
        """The same values, cut off from the graph that made them."""
        return self._map(lambda _, tensor: tensor.detach())

    def to(self, place: torch.device | torch.dtype) -> State:
        """The state on another device or in another type."""
        return self._map(lambda _, tensor: tensor.to(place))

    def select(self, columns: slice | Tensor) -> State:
        """The state of some of the streams."""
        return self._map(lambda name, tensor: tensor[_batch_index(name, columns)])

    def tensors(self, prefix: str = "") -> dict[str, Tensor]:
        """The fields by name, ready for a safetensors file."""
        return {prefix + f.name: getattr(self, f.name).contiguous() for f in dataclasses.fields(self)}

    @staticmethod
    def from_tensors(tensors: Mapping[str, Tensor], prefix: str = "") -> State:
        """Inverse of `tensors`."""
        return State(**{f.name: tensors[prefix + f.name] for f in dataclasses.fields(State)})

    def _map(self, change: Callable[[str, Tensor], Tensor]) -> State:
        return State(**{f.name: change(f.name, getattr(self, f.name)) for f in dataclasses.fields(self)})


def _batch_index(field: str, columns: slice | Tensor) -> tuple[slice | Tensor, ...]:
    before = 2 if field in ("hidden", "cells") else 1
    return (*[slice(None)] * before, columns)
