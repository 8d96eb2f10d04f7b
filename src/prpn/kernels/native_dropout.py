"""Dropout without stored masks, in the native core (native/dropout.cpp).

# n features
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from prpn.kernels.autocast import backward_without_autocast
from prpn.kernels.checked import address, evenly_spaced
from prpn.kernels.native import required_library, threads


@dataclass(frozen=True)
class HashedMask:
    """A dropout mask that is a function of seed, row and column; it is never stored."""

    seed: int
    rate: float

    @staticmethod
    def draw(rate: float) -> HashedMask:
        """A new mask; the seed comes from torch's generator, so that runs repeat."""
        return HashedMask(int(torch.randint(2**63 - 1, ())) if rate else 0, rate)

    def apply_to(self, x: Tensor) -> Tensor:
        """The elements of x (…, n) that are kept, scaled up by 1/(1 − rate)."""
        rows = evenly_spaced(x)
        result = torch.empty(x.shape)
        count, columns = result.numel() // max(1, x.shape[-1]), x.shape[-1]
        required_library().prpn_dropout(
            address(rows, x.shape, "evenly spaced"), _row_stride(rows), count, columns, self.seed, self.rate,
            address(result, x.shape), threads(),
        )  # fmt: skip
        return result

    def materialise(self, *shape: int) -> Tensor:
        """The mask itself: 0 and 1/(1 − rate)."""
        return self.apply_to(torch.ones(shape))


def native_dropout(x: Tensor, rate: float) -> Tensor:
    """Dropout of (…, n)."""
    dropped: Tensor = _Dropout.apply(x, HashedMask.draw(rate))  # type: ignore[no-untyped-call]
    return dropped


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: HashedMask) -> Tensor:
        ctx.mask = mask
        return mask.apply_to(x)

    @staticmethod
    @backward_without_autocast
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.mask.apply_to(gradient), None


def _row_stride(x: Tensor) -> int:
    return x.stride(-2) if x.dim() > 1 else x.numel()
