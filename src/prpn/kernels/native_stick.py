"""Gates as products of factors, in the native core (native/stick.cpp).

# N memory slots, oldest first
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from prpn.kernels.autocast import backward_without_autocast
from prpn.kernels.checked import address
from prpn.kernels.native import required_library, threads


def native_stick(factors: Tensor) -> Tensor:
    """The same as `prpn.model.parsing.stick` of factors (…, N)."""
    gates: Tensor = _Stick.apply(factors.contiguous())  # type: ignore[no-untyped-call]
    return gates


class _Stick(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, factors: Tensor) -> Tensor:
        gates = torch.empty_like(factors)
        place, to = (address(x, factors.shape) for x in (factors, gates))
        required_library().prpn_stick_forward(place, *_rows(factors), to, threads())
        ctx.save_for_backward(factors, gates)
        return gates

    @staticmethod
    @backward_without_autocast
    def backward(ctx: Any, d_gates: Tensor) -> Tensor:
        factors, gates = ctx.saved_tensors
        d_gates, d_factors = d_gates.contiguous(), torch.empty_like(factors)
        *places, to = (address(x, factors.shape) for x in (factors, gates, d_gates, d_factors))
        required_library().prpn_stick_backward(*places, *_rows(factors), to, threads())
        return d_factors


def _rows(x: Tensor) -> tuple[int, int]:
    return x.numel() // max(1, x.shape[-1]), x.shape[-1]
