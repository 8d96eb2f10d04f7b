"""The reading recurrence in the native core (native/reading.h): the same as `prpn.kernels.recurrence`, and faster.

Dropout masks are not drawn but hashed from a seed, forwards and again backwards; the LSTM's gates are computed again
backwards. Gradients are written over what the forward pass kept, `gate_inputs` among it, so the backward pass can run
once.

    # T time, B batch, N memory slots, H hidden; oldest slot first
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from prpn.kernels import as_forwards, in_use
from prpn.kernels.autocast import backward_without_autocast
from prpn.kernels.checked import evenly_spaced
from prpn.kernels.native import required_library, threads
from prpn.kernels.native_dropout import HashedMask
from prpn.kernels.products import product
from prpn.kernels.structs import Reading

if TYPE_CHECKING:
    from prpn.model.reading import Rates, ReadingLayer, Tapes


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
    key_weight: Tensor | None,
    gates: Tensor,
    past_hidden: Tensor,
    past_cells: Tensor,
    masks: HashedMasks,
) -> Tapes:
    """The same as `prpn.model.reading.recurrence`, but the backward pass uses `gate_inputs` as its own.

    Closed gates get no gradient, which would end at the factor that closed them (native/attention.h).
    """
    from prpn.model.reading import Tapes

    hidden, cells, attention, now = _Recurrence.apply(  # type: ignore[no-untyped-call]
        layer.hidden_norm.released,
        masks,
        gate_inputs,
        key_inputs,
        gates,
        past_hidden,
        past_cells,
        key_weight,
        layer.input_norm.gain,
        layer.input_norm.bias,
        *layer.recurrent_weights,
    )
    return Tapes(hidden, cells, None if key_inputs is None else attention, now)


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        released: bool,
        masks: HashedMasks,
        gate_inputs: Tensor,
        key_inputs: Tensor | None,
        gates: Tensor,
        past_hidden: Tensor,
        past_cells: Tensor,
        key_weight: Tensor | None,
        *norms_and_weights: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        ctx.kernels = in_use()
        ctx.set_materialize_grads(False)  # of cells nothing is wanted, unless someone asks for the state's gradient
        (steps, batch, slots), size = gates.shape, past_hidden.shape[-1]
        attends = key_inputs is not None
        weights = [tensor.contiguous() for tensor in norms_and_weights]
        gate_inputs, gates = gate_inputs.contiguous(), gates.contiguous()
        key_inputs = None if key_inputs is None else key_inputs.contiguous()
        past = [evenly_spaced(past_hidden), evenly_spaced(past_cells)]
        inputs = [gate_inputs, key_inputs, gates, *past, key_weight, *weights, masks.recurrent]
        reading = Reading().set(
            steps=steps,
            batch=batch,
            slots=slots,
            hidden=size,
            past_hidden_stride=past[0].stride(1),
            past_cells_stride=past[1].stride(1),
            key_stride=0 if key_weight is None else key_weight.stride(0),
            threads=threads(),
            released=released,
            bf16=ctx.kernels == "bf16",
            attends=attends,
            **dict(zip(Reading.INPUTS, inputs, strict=True)),
            key_in_seed=masks.key_in.seed,
            key_out_seed=masks.key_out.seed,
            attention_seed=masks.attention.seed,
            key_rate=masks.key_in.rate,
            attention_rate=masks.attention.rate,
        )
        shapes = reading.shapes()
        kept = {name: gates.new_empty(shapes[name]) for name in Reading.KEPT}
        reading.set(**kept)
        required_library().prpn_reading_forward(ctypes.byref(reading))
        tape, attention = kept.pop("tape"), kept.pop("attention")
        kept["gate_inputs"] = gate_inputs
        ctx.reading, ctx.masks, ctx.kept, ctx.attends = reading, masks, kept, attends
        ctx.save_for_backward(tape, attention, gates, key_weight, *weights)
        ctx.mark_non_differentiable(attention)
        return tape[..., :size], tape[..., size:], attention, tape[slots:, :, :size]

    @staticmethod
    @backward_without_autocast
    def backward(
        ctx: Any, d_hidden: Tensor | None, d_cells: Tensor | None, _: None, d_now: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        if ctx.kept is None:
            raise RuntimeError("the backward pass of the native recurrence can run once only")
        kept, ctx.kept = ctx.kept, None
        tape, attention, gates, key_weight, *weights = ctx.saved_tensors
        reading, masks = ctx.reading, ctx.masks
        (_, batch, slots), size = gates.shape, tape.shape[-1] // 2
        d_hidden, d_cells, d_now = (None if d is None else d.contiguous() for d in (d_hidden, d_cells, d_now))
        d_gates = torch.zeros_like(gates) if not ctx.attends else torch.empty_like(gates)
        d_past = tape.new_empty(slots, batch, 2 * size) if any(ctx.needs_input_grad[5:7]) else None
        d_keys, d_scores = torch.empty_like(kept["keys"]), torch.empty_like(kept["relative"])
        d_summaries = torch.empty_like(kept["summaries"])
        sums = {name: tape.new_zeros((1 if "cell" in name else 4) * size) for name in Reading.SUMS}
        reading.set(
            threads=threads(),
            tape=tape,
            attention=attention,
            gates=gates,
            key_weight=key_weight,
            **dict(zip(Reading.WEIGHTS, weights, strict=True)),
            keeps_past_gradient=d_past is not None,
            d_hidden=d_hidden,
            d_cells=d_cells,
            d_now=d_now,
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
            with as_forwards(ctx.kernels):
                d_key_weight = product(d_keys.flatten(0, 1).t(), previous.flatten(0, 1))
        with as_forwards(ctx.kernels):
            d_hidden_weight = product(kept["normed"].flatten(0, 1).t(), recalled.flatten(0, 1))
        return (
            None,
            None,
            kept["gate_inputs"],
            d_keys if ctx.attends else None,
            d_gates,
            *((None, None) if d_past is None else d_past.chunk(2, -1)),
            d_key_weight,
            sums["d_input_gain"],
            sums["d_shift"],
            d_hidden_weight,
            sums["d_hidden_bias"],
            sums["d_hidden_gain"],
            sums["d_shift"].clone(),
            sums["d_cell_gain"],
            sums["d_cell_shift"],
        )
