"""A step of Adam for all weights at once in the native core (native/adam.cpp)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor
from torch.autograd.graph import increment_version

from prpn.kernels import structs
from prpn.kernels.checked import address
from prpn.kernels.native import required_library, threads


class Learned(NamedTuple):
    """A weight and what Adam knows of it, all lying in memory in the same way."""

    weight: Tensor
    gradient: Tensor
    mean: Tensor | None
    """m, unless β₁ = 0."""
    square: Tensor
    step: int
    """Counted from 1."""


def native_adam(
    learned: Sequence[Learned],
    rate: float,
    betas: tuple[float, float],
    epsilon: float,
    decay: float,
    clip: float,
) -> None:
    """Move the weights; the norm of all gradients together is clipped unless `clip` is 0."""
    rows = (structs.Learned * len(learned))(*map(_mirrored, learned))
    settings = structs.Settings(rate, *betas, epsilon, decay, clip)
    required_library().prpn_adam(rows, len(learned), ctypes.byref(settings), threads())
    moments = (moment for one in learned for moment in (one.mean, one.square) if moment is not None)
    increment_version(
        [*(one.weight for one in learned), *moments]
    )  # autograd notices what PyTorch itself changes alone


def _mirrored(one: Learned) -> structs.Learned:
    weight, tensors = one.weight, (one.weight, one.gradient, one.mean, one.square)
    places = [address(tensor, weight.shape, "anyhow") for tensor in tensors]
    if not all(tensor is None or _strides(tensor) == _strides(weight) for tensor in tensors):
        raise ValueError("a weight and what is known of it do not lie in memory in the same way")
    if weight.numel() != 1 + sum((size - 1) * stride for size, stride in _strides(weight)) and weight.numel():
        raise ValueError("a weight has gaps in memory")
    return structs.Learned(*places, weight.numel(), one.step)


def _strides(x: Tensor) -> list[tuple[int, int]]:
    """Sizes and strides of the dimensions along which there is more than one number."""
    return [(size, stride) for size, stride in zip(x.shape, x.stride(), strict=True) if size > 1]
