"""Batch normalisation of rows by their own statistics, with the activation after it, in the native core.

# R rows, C columns (native/batch_norm.cpp)
"""

from __future__ import annotations

import ctypes
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from prpn.kernels.autocast import backward_without_autocast
from prpn.kernels.native import required_library, threads
from prpn.kernels.structs import BatchNorm

Activation = Literal["none", "relu", "tanh"]
"""As native/batch_norm.cpp numbers them."""


def native_batch_norm(rows: Tensor, norm: nn.BatchNorm1d, activation: Activation) -> Tensor:
    """The same as a training `nn.BatchNorm1d` of rows (R, C), then the activation; running statistics move."""
    assert norm.num_batches_tracked is not None
    result: Tensor = _Normalise.apply(rows.contiguous(), norm.weight, norm.bias, norm, activation)  # type: ignore[no-untyped-call]
    norm.num_batches_tracked.add_(1)
    return result


class _Normalise(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, gain: Tensor, shift: Tensor, norm: nn.BatchNorm1d, activation: Activation
    ) -> Tensor:
        y, mean, inverse = torch.empty_like(x), torch.empty_like(gain), torch.empty_like(gain)
        arguments = BatchNorm().set(
            rows=len(x), columns=x.shape[1], threads=threads(), activation=get_args(Activation).index(activation),
            epsilon=norm.eps, momentum=norm.momentum, x=x, gain=gain, shift=shift, y=y, mean=mean, inverse=inverse,
            running_mean=norm.running_mean, running_variance=norm.running_var,
        )  # fmt: skip
        required_library().prpn_batch_norm(ctypes.byref(arguments))
        ctx.arguments = arguments
        ctx.save_for_backward(x, gain, y, mean, inverse)
        return y

    @staticmethod
    @backward_without_autocast
    def backward(ctx: Any, d_y: Tensor) -> tuple[Tensor | None, ...]:
        x, gain, y, mean, inverse = ctx.saved_tensors
        d_y = d_y.contiguous()
        d_x, d_gain, d_shift = torch.empty_like(x), torch.empty_like(gain), torch.empty_like(gain)
        arguments = ctx.arguments.with_fields(
            threads=threads(), x=x, gain=gain, y=y, mean=mean, inverse=inverse, d_y=d_y, d_x=d_x, d_gain=d_gain,
            d_shift=d_shift,
        )  # fmt: skip
        required_library().prpn_batch_norm(ctypes.byref(arguments))
        return d_x, d_gain, d_shift, None, None
