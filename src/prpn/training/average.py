"""Exponential moving average of the weights.

    average ← δ_t · average + (1 − δ_t) · weights,    δ_t = min(δ, (1 + t)/(10 + t))

The decay grows with the step so that the first weights, which are random, are soon forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

from prpn.model import PRPN
from prpn.training.checkpoint import require_shape


class WeightAverage:
    """The average of parameters and batch-norm statistics of a network; counters are copied."""

    def __init__(self, network: PRPN, decay: float) -> None:
        self.network, self.decay = network, decay
        self.weights = {name: tensor.clone() for name, tensor in network.state_dict().items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after a step, counted from 0."""
        decay = min(self.decay, (1 + step) / (10 + step))
        for name, tensor in self.network.state_dict().items():
            if tensor.is_floating_point():
                self.weights[name].lerp_(tensor, 1 - decay)
            else:
                self.weights[name].copy_(tensor)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within the block the network has the average as its weights."""
        own = {name: tensor.clone() for name, tensor in self.network.state_dict().items()}
        self.network.load_state_dict(self.weights)
        try:
            yield
        finally:
            self.network.load_state_dict(own)

    def tensors(self) -> dict[str, Tensor]:
        """For a checkpoint."""
        return {f"average.{name}": tensor for name, tensor in self.weights.items()}

    def load(self, tensors: Mapping[str, Tensor], place: str) -> None:
        """Inverse of `tensors`."""
        for name, tensor in self.weights.items():
            tensor.copy_(require_shape(tensors, f"average.{name}", tensor.shape, place))
