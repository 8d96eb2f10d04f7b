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
    hidden: tuple[Tensor, ...]  # (N, B, H) a layer
    cells: tuple[Tensor, ...]  # (N, B, H) a layer

    @staticmethod
    def zero(config: ModelConfig, batch: int, like: Tensor) -> State:
        """The state before the first token: zero vectors, and distances that close every gate.

        Args:
            config: The network it is for.
            batch: Streams that are read side by side.
            like: A tensor on its device and of its type.

        """

        def tapes() -> tuple[Tensor, ...]:
            return tuple(like.new_zeros(config.memory_slots, batch, config.hidden) for _ in range(config.layers))

        return State(
            embeddings=like.new_zeros(config.lookback, batch, config.embedding),
            distances=like.new_full((config.memory_slots, batch), torch.inf),
            hidden=tapes(),
            cells=tapes(),
        )

    @property
    def batch(self) -> int:
        """How many streams this is the state of."""
        return self.distances.shape[1]

    def detach(self) -> State:
        """The same values, cut off from the graph that made them."""
        return self._map(Tensor.detach)

    def to(self, place: torch.device | torch.dtype) -> State:
        """The state on another device or in another type.

        Args:
            place: The device, or the type.

        """
        return self._map(lambda tensor: tensor.to(place))

    def select(self, columns: slice | Tensor) -> State:
        """The state of some of the streams.

        Args:
            columns: Which ones: a slice, or a tensor of their numbers.

        """
        return self._map(lambda tensor: tensor[:, columns])

    def tensors(self, prefix: str = "") -> dict[str, Tensor]:
        """The fields by name, ready for a safetensors file; layers become the first dimension.

        Args:
            prefix: What each name begins with.

        """
        fields = {
            "embeddings": self.embeddings.contiguous(),
            "distances": self.distances.contiguous(),
            "hidden": torch.stack(self.hidden),
            "cells": torch.stack(self.cells),
        }
        return {prefix + name: tensor for name, tensor in fields.items()}

    @staticmethod
    def from_tensors(tensors: Mapping[str, Tensor], prefix: str = "") -> State:
        """Inverse of `tensors`.

        Args:
            tensors: Tensors by name; there may be others among them.
            prefix: What the names of the state's begin with.

        """
        embeddings, distances, hidden, cells = (tensors[prefix + f.name] for f in dataclasses.fields(State))
        return State(embeddings, distances, hidden.unbind(), cells.unbind())

    def _map(self, change: Callable[[Tensor], Tensor]) -> State:
        hidden, cells = tuple(map(change, self.hidden)), tuple(map(change, self.cells))
        return State(change(self.embeddings), change(self.distances), hidden, cells)
