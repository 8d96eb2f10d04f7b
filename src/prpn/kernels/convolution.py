"""The parsing network's convolution over time as products that add up in place, forwards and backwards.

    y_t = b + Σ_k W_k x_{t+k}        ∂x_{t+k} += W_kᵀ ∂y_t        ∂W_k = Σ_t ∂y_t x_{t+k}ᵀ

Time is the first dimension, so the rows x_k … x_{k+T−1} lie together and nothing is unfolded or copied. Forwards the
products are fp32 whatever the others are: sharp gates multiply an error in the distances.

    # T time, B batch, L look-back, E embedding, C channels
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from prpn.kernels.products import product


def convolve(tape: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(T, B, C) from a tape (L + T, B, E) and a weight (C, E, L + 1)."""
    result: Tensor = _Convolution.apply(tape.contiguous(), weight, bias)  # type: ignore[no-untyped-call]
    return result


def lying_by_time(weight: Tensor) -> nn.Parameter:
    """The same weight (C, E, L + 1), lying in memory as W_0 … W_L one after the other, as products want it."""
    return nn.Parameter(_by_time(weight.detach()).permute(1, 2, 0))


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tape: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(tape, weight)
        steps, batch = len(tape) - weight.shape[2] + 1, tape.shape[1]
        result = tape.new_empty(steps * batch, len(bias))
        for k, (rows, factor) in enumerate(zip(_shifted(tape, steps), _by_time(weight), strict=True)):
            product(rows, factor.t(), result if k else bias, result, precise=True)
        return result.view(steps, batch, -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        tape, weight = ctx.saved_tensors
        steps, gradient = len(gradient), gradient.flatten(0, 1)  # (T·B, C)
        factors = _by_time(weight)  # (L + 1, C, E)
        d_tape, d_factors = torch.zeros_like(tape), torch.empty_like(factors)
        places = zip(_shifted(tape, steps), _shifted(d_tape, steps), factors, d_factors, strict=True)
        for rows, d_rows, factor, d_factor in places:
            product(gradient, factor, d_rows, d_rows)
            product(gradient.t(), rows, out=d_factor)
        return d_tape, d_factors.permute(1, 2, 0), gradient.sum(0)


def _by_time(weight: Tensor) -> Tensor:
    """W_0 … W_L one after the other (L + 1, C, E), of a weight (C, E, L + 1); no copy where it lies so already."""
    return weight.permute(2, 0, 1).contiguous()


def _shifted(tape: Tensor, steps: int) -> list[Tensor]:
    """The rows (T·B, …) from each of the first L + 1 times on: views of the tape."""
    return [tape[k : k + steps].flatten(0, 1) for k in range(len(tape) - steps + 1)]
