"""The parsing network's convolution over time as products that add up in place, forwards and backwards.

    y_t = b + Σ_k W_k x_{t+k}        ∂x_{t+k} += W_kᵀ ∂y_t        ∂W_k = Σ_t ∂y_t x_{t+k}ᵀ

Time is the first dimension, so the rows x_k … x_{k+T−1} lie together and nothing is unfolded or copied. Forwards the
products are fp32 whatever the others are: sharp gates multiply an error in the distances.

The native core does the same in one call each way, with fewer products (native/convolution.cpp), where fp32 products
are its own (`products.native_form`).

    # T time, B batch, L look-back, E embedding, C channels
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from prpn.kernels import as_forwards, in_use
from prpn.kernels.autocast import backward_without_autocast
from prpn.kernels.native_convolution import NativeConvolution
from prpn.kernels.products import native_form, product


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
        factors = _by_time(weight)  # (L + 1, C, E)
        steps, batch = len(tape) - len(factors) + 1, tape.shape[1]
        ctx.kernels, ctx.native = in_use(), None
        if native_form(steps * batch, tape, precise=True) is not None:
            ctx.native = NativeConvolution()
            native_result, kept = ctx.native.forward(tape, factors, bias)
            ctx.save_for_backward(tape, weight, *kept)
            return native_result
        ctx.save_for_backward(tape, weight)
        result, start = tape.new_empty(steps * batch, len(bias)), bias
        for k in range(len(factors)):
            product(_shifted(tape, k, steps), factors[k].t(), start, result, precise=True)
            start = result
        return result.view(steps, batch, -1)

    @staticmethod
    @backward_without_autocast
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        tape, weight, *kept = ctx.saved_tensors
        factors, gradient = _by_time(weight), gradient.contiguous()
        steps, rows = len(gradient), gradient.flatten(0, 1)  # (T·B, C)
        with as_forwards(ctx.kernels):
            form = native_form(len(rows), rows)
            if ctx.native is not None and form is not None:
                d_tape, d_factors, d_bias = ctx.native.backward(tape, factors, kept, gradient, form)
                return d_tape, d_factors.permute(1, 2, 0), d_bias
            d_tape, d_factors = torch.zeros_like(tape), torch.empty_like(factors)
            for k in range(len(factors)):
                d_rows = _shifted(d_tape, k, steps)
                product(rows, factors[k], d_rows, d_rows)
                product(rows.t(), _shifted(tape, k, steps), out=d_factors[k])
        return d_tape, d_factors.permute(1, 2, 0), rows.sum(0)


def _by_time(weight: Tensor) -> Tensor:
    """W_0 … W_L one after the other (L + 1, C, E), of a weight (C, E, L + 1); no copy where it lies so already."""
    return weight.permute(2, 0, 1).contiguous()


def _shifted(tape: Tensor, k: int, steps: int) -> Tensor:
    """The rows (T·B, …) from time k on: a view of the tape."""
    return tape[k : k + steps].flatten(0, 1)
