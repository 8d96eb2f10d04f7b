"""The predict network's attention in the native core (native/predicting.cpp).

# T time, B batch, N memory slots, H hidden; oldest slot first
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor

from prpn.kernels.autocast import backward_without_autocast
from prpn.kernels.checked import evenly_spaced
from prpn.kernels.native import required_library, threads
from prpn.kernels.native_dropout import HashedMask
from prpn.kernels.structs import Predicting


def native_attention(tape: Tensor, keys: Tensor, gates: Tensor, rate: float) -> tuple[Tensor, Tensor]:
    """Weights (T, B, N), to look at, and [h_t; summary] (T, B, 2H), of keys (T, B, H) over the tape (N + T, B, H).

    Closed gates get no gradient, which would end at the factor that closed them (native/attention.h).
    """
    mask = HashedMask.draw(rate)
    found: tuple[Tensor, Tensor] = _Attention.apply(tape, keys, gates, mask)  # type: ignore[no-untyped-call]
    return found


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tape: Tensor, keys: Tensor, gates: Tensor, mask: HashedMask) -> tuple[Tensor, Tensor]:
        tape, keys, gates = evenly_spaced(tape), keys.contiguous(), gates.contiguous()
        relative, attention, kept = torch.empty(3, *gates.shape).unbind()
        joined = keys.new_empty(*keys.shape[:2], 2 * keys.shape[2])
        predicting = Predicting().set(
            steps=len(gates), batch=gates.shape[1], slots=gates.shape[2], hidden=keys.shape[2],
            tape_stride=tape.stride(1), threads=threads(), tape=tape, keys=keys, gates=gates, seed=mask.seed,
            rate=mask.rate, relative=relative, attention=attention, kept=kept, joined=joined,
        )  # fmt: skip
        required_library().prpn_predicting_forward(ctypes.byref(predicting))
        ctx.predicting = predicting
        ctx.save_for_backward(tape, keys, gates, relative, attention, kept)
        ctx.mark_non_differentiable(attention)
        return attention, joined

    @staticmethod
    @backward_without_autocast
    def backward(ctx: Any, _: Tensor, d_joined: Tensor) -> tuple[Tensor | None, ...]:
        tape, keys, gates, relative, attention, kept = ctx.saved_tensors
        d_joined = d_joined.contiguous()
        d_gates, d_scores, d_keys = torch.empty_like(gates), torch.empty_like(gates), torch.empty_like(keys)
        d_tape = tape.new_empty(tape.shape)
        predicting = ctx.predicting.with_fields(
            threads=threads(), tape=tape, keys=keys, gates=gates, relative=relative, attention=attention, kept=kept,
            d_joined=d_joined, d_gates=d_gates, d_scores=d_scores, d_keys=d_keys, d_tape=d_tape,
        )  # fmt: skip
        required_library().prpn_predicting_backward(ctypes.byref(predicting))
        return d_tape, d_keys, d_gates, None
