"""A step of Adam for all weights at once in the native core (native/adam.cpp)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor
from torch.autograd.graph import increment_version

from prpn.kernels.native import Pointer, address, required_library, threads


class Learned(NamedTuple):
    """A weight and what Adam knows of it, all lying in memory in the same way."""

    weight: Tensor
    gradient: Tensor
    mean: Tensor | None
    """m, unless β₁ = 0."""
    square: Tensor
    step: int
    """Counted from 1."""


class _Learned(ctypes.Structure):
    _fields_ = (
        *((name, Pointer) for name in ("weight", "gradient", "mean", "square")),
        *((name, ctypes.c_int64) for name in ("count", "step")),
    )


class _Settings(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_double) for name in ("rate", "beta1", "beta2", "epsilon", "decay", "clip"))


def native_adam(
    learned: Sequence[Learned],
    rate: float,
    betas: tuple[float, float],
    epsilon: float,
    decay: float,
    clip: float,
) -> None:
    """Move the weights; the norm of all gradients together is clipped unless `clip` is 0."""
    rows = (_Learned * len(learned))(
        *(
            _Learned(*map(address, (one.weight, one.gradient, one.mean, one.square)), one.weight.numel(), one.step)
            for one in learned
        )
    )
    settings = _Settings(rate, *betas, epsilon, decay, clip)
    required_library().prpn_adam(rows, len(learned), ctypes.byref(settings), threads())
    moments = (moment for one in learned for moment in (one.mean, one.square) if moment is not None)
    increment_version(
        [*(one.weight for one in learned), *moments]
    )  # autograd notices what PyTorch itself changes alone
