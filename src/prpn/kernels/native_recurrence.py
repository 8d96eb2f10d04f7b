"""The reading recurrence in the native core (native/reading.cpp): the same as `prpn.kernels.recurrence`, and faster.

Dropout masks are not drawn but hashed from a seed, forwards and again backwards. The backward pass writes the gradients
of the gates over what the forward pass kept, so it can run once.

    # T time, B batch, N memory slots, H hidden; oldest slot first
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from prpn.kernels import in_use
from prpn.kernels.native import Arguments, Pointer, required_library
from prpn.kernels.native_rows import HashedMask, threads
from prpn.kernels.products import product

if TYPE_CHECKING:
    from prpn.model.reading import Rates, ReadingLayer, Tapes

_SIZES = ("steps", "batch", "slots", "hidden", "key_stride", "threads")
_FLAGS = ("released", "bf16", "attends", "keeps_past_gradient")
_INPUTS = (
    "gate_inputs", "key_inputs", "gates", "key_weight", "hidden_weight", "hidden_bias", "hidden_gain", "hidden_shift",
    "cell_gain", "cell_shift", "recurrent_mask",
)  # fmt: skip
_SEEDS = ("key_in_seed", "key_out_seed", "attention_seed")
_RATES = ("key_rate", "attention_rate")
_KEPT = (
    "tape", "summaries", "keys", "relative", "attention", "kept", "activations", "normed", "hidden_scale", "cell_mean",
    "cell_scale",
)  # fmt: skip
_GRADIENTS = (
    "d_tape", "d_past", "d_gates", "d_keys", "d_scores", "d_summaries", "d_hidden_bias", "d_hidden_gain",
    "d_hidden_shift", "d_cell_gain", "d_cell_shift",
)  # fmt: skip


class _Reading(Arguments):
    """The struct of the same name in native/reading.cpp, field by field."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in _SIZES),
        *((name, ctypes.c_int32) for name in _FLAGS),
        *((name, Pointer) for name in _INPUTS),
        *((name, ctypes.c_uint64) for name in _SEEDS),
        *((name, ctypes.c_float) for name in _RATES),
        *((name, Pointer) for name in (*_KEPT, *_GRADIENTS)),
    )


@dataclass(frozen=True)
class HashedMasks:
    """`prpn.model.reading.Masks`, hashed: what differs from place to place is never stored."""

    key_in: HashedMask
    key_out: HashedMask
    attention: HashedMask
    recurrent: Tensor | None  # (H,)

    @staticmethod
    def draw(rates: Rates, past_hidden: Tensor) -> HashedMasks:
        """New masks for a chunk after the past states (N, B, H)."""
        recurrent = HashedMask.draw(rates.recurrent).materialise(past_hidden.shape[-1]) if rates.recurrent else None
        key_in, key_out = HashedMask.draw(rates.key), HashedMask.draw(rates.key)
        return HashedMasks(key_in, key_out, HashedMask.draw(rates.attention), recurrent)


def native_recurrence(
    layer: ReadingLayer,
    gate_inputs: Tensor,
    key_inputs: Tensor | None,
    gates: Tensor,
    past_hidden: Tensor,
    past_cells: Tensor,
    masks: HashedMasks,
) -> Tapes:
    """The same as `prpn.model.reading.recurrence`."""
    from prpn.model.reading import Tapes

    tape, attention = _Recurrence.apply(  # type: ignore[no-untyped-call]
        layer.hidden_norm.released,
        masks,
        gate_inputs,
        key_inputs,
        gates,
        torch.cat([past_hidden, past_cells], -1),
        None if key_inputs is None else layer.key_from_hidden,
        *layer.recurrent_weights,
    )
    hidden, cells = tape.chunk(2, -1)
    return Tapes(hidden, cells, None if key_inputs is None else attention)


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        released: bool,
        masks: HashedMasks,
        gate_inputs: Tensor,
        key_inputs: Tensor | None,
        gates: Tensor,
        past: Tensor,
        key_weight: Tensor | None,
        *norms_and_weights: Tensor,
    ) -> tuple[Tensor, Tensor]:
        hidden_weight = norms_and_weights[0]
        (steps, batch, slots), size = gates.shape, hidden_weight.shape[1]
        attends = key_inputs is not None
        attending = steps if attends else 0
        shapes = {
            "summaries": (steps, batch, 2 * size),  # [h̃; c̃]
            "keys": (attending, batch, size),
            "relative": (attending, batch, slots),
            "attention": (attending, batch, slots),
            "kept": (attending, batch, slots),
            "activations": (steps, batch, 4 * size),
            "normed": (steps, batch, 4 * size),
            "hidden_scale": (steps, batch),
            "cell_mean": (steps, batch),
            "cell_scale": (steps, batch),
        }
        kept = {name: past.new_empty(shape) for name, shape in shapes.items()}
        kept["tape"] = torch.cat([past, past.new_empty(steps, batch, 2 * size)])  # (N + T, B, 2H): [h; c]
        weights = [tensor.contiguous() for tensor in norms_and_weights]
        given = [gate_inputs.contiguous(), None if key_inputs is None else key_inputs.contiguous(), gates.contiguous()]
        inputs = [*given, key_weight, *weights, masks.recurrent]
        reading = _Reading()
        reading.set(
            steps=steps,
            batch=batch,
            slots=slots,
            hidden=size,
            key_stride=0 if key_weight is None else key_weight.stride(0),
            threads=threads(),
            released=released,
            bf16=in_use() == "bf16",
            attends=attends,
            **dict(zip(_INPUTS, inputs, strict=True)),
            key_in_seed=masks.key_in.seed,
            key_out_seed=masks.key_out.seed,
            attention_seed=masks.attention.seed,
            key_rate=masks.key_in.rate,
            attention_rate=masks.attention.rate,
            **kept,
        )
        required_library().prpn_reading_forward(ctypes.byref(reading))
        tape, attention = kept.pop("tape"), kept.pop("attention")
        ctx.reading, ctx.masks, ctx.kept, ctx.attends = reading, masks, kept, attends
        ctx.save_for_backward(tape, attention, given[2], key_weight, *weights)
        ctx.mark_non_differentiable(attention)
        return tape, attention

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_tape: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.kept is None:
            raise RuntimeError("the backward pass of the native recurrence can run once only")
        tape, attention, gates, key_weight, *weights = ctx.saved_tensors
        kept, reading, masks = ctx.kept, ctx.reading, ctx.masks
        ctx.kept = None
        (_, batch, slots), size = gates.shape, weights[0].shape[1]
        d_tape = d_tape.contiguous()
        d_gates = torch.zeros_like(gates) if not ctx.attends else torch.empty_like(gates)
        d_past = d_tape.new_empty(slots, batch, 2 * size) if ctx.needs_input_grad[5] else None
        d_keys, d_scores = torch.empty_like(kept["keys"]), torch.empty_like(kept["relative"])
        d_summaries = torch.empty_like(kept["summaries"])
        sums = {name: torch.zeros_like(weight) for name, weight in zip(_GRADIENTS[-5:], weights[1:], strict=True)}
        reading.set(
            tape=tape,
            attention=attention,
            gates=gates,
            key_weight=key_weight,
            **dict(zip(_INPUTS[4:10], weights, strict=True)),
            keeps_past_gradient=d_past is not None,
            d_tape=d_tape,
            d_past=d_past,
            d_gates=d_gates,
            d_keys=d_keys,
            d_scores=d_scores,
            d_summaries=d_summaries,
            **sums,
        )
        required_library().prpn_reading_backward(ctypes.byref(reading))
        recalled = kept["summaries"][..., :size]  # h̃
        if masks.recurrent is not None:
            recalled = recalled * masks.recurrent
        d_key_weight = None
        if ctx.attends:
            previous = tape[slots - 1 : -1, :, :size]  # h_{t−1}
            if masks.key_in.rate:
                previous = masks.key_in.apply_to(previous)
            d_key_weight = product(d_keys.flatten(0, 1).t(), previous.flatten(0, 1))
        return (
            None,
            None,
            kept["activations"],
            d_keys if ctx.attends else None,
            d_gates,
            d_past,
            d_key_weight,
            product(kept["normed"].flatten(0, 1).t(), recalled.flatten(0, 1)),
            *sums.values(),
        )
