"""The reading recurrence with tapes that do not move and one hand-written backward through time.

Autograd would record some twenty small operations a step and copy the last N states at each. Here the states of a layer
lie on one tape [h; c] of N + T rows, a step reads its window in place, and the backward pass walks the tape once:

    forward   window_t = tape[t : t+N],  tape[N+t] = [h_t; c_t]
    backward  ∂tape[t : t+N] += s ⊗ ∂[h̃; c̃] + ∂a ⊗ [k; 0],  where ∂s = window · ∂[h̃; c̃]
              ∂a = s (∂s − s·∂s) and ∂g = e (∂s − s·∂s) with e = exp(a − max a) / (Σ g exp(a − max a) + ε)

Weight gradients are one product over all T·B rows after the loop.

    # T time, B batch, N memory slots, H hidden; oldest slot first
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from prpn.kernels.autocast import backward_without_autocast
from prpn.kernels.layer_norm import kappa, normalise, normalise_backward

if TYPE_CHECKING:
    from prpn.model.reading import Masks, ReadingLayer, Tapes

ATTENTION_EPSILON = 1e-8
"""Added to the normaliser of attention, as in the released code."""


def attention_epsilon(kind: torch.dtype) -> float:
    """The same in a type of numbers; fp16 has none so small, and closed gates would give 0/0."""
    return max(ATTENTION_EPSILON, torch.finfo(kind).tiny)


def fast_recurrence(
    layer: ReadingLayer,
    gate_inputs: Tensor,
    key_inputs: Tensor | None,
    key_weight: Tensor | None,
    gates: Tensor,
    past_hidden: Tensor,
    past_cells: Tensor,
    masks: Masks,
) -> Tapes:
    """The same as `prpn.model.reading.recurrence`."""
    from prpn.model.reading import Tapes

    tape, attention = _Recurrence.apply(  # type: ignore[no-untyped-call]
        layer.hidden_norm.released,
        layer.input_norm(gate_inputs),
        key_inputs,
        gates,
        torch.cat([past_hidden, past_cells], -1),
        key_weight,
        *layer.recurrent_weights,
        masks.key_in,
        masks.key_out,
        masks.attention,
        masks.recurrent,
    )
    hidden, cells = tape.chunk(2, -1)
    return Tapes(hidden, cells, None if key_inputs is None else attention, hidden[len(past_hidden) :])


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        released: bool,
        gate_inputs: Tensor,
        key_inputs: Tensor | None,
        gates: Tensor,
        past: Tensor,
        key_weight: Tensor | None,
        hidden_weight: Tensor,
        hidden_bias: Tensor,
        hidden_gain: Tensor,
        hidden_shift: Tensor,
        cell_gain: Tensor,
        cell_shift: Tensor,
        key_in: Tensor | None,
        key_out: Tensor | None,
        attention_mask: Tensor | None,
        recurrent_mask: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        (steps, batch, slots), size = gates.shape, hidden_weight.shape[1]
        tape = torch.cat([past, past.new_empty(steps, batch, 2 * size)])  # (N + T, B, 2H): [h; c]
        summaries = past.new_empty(steps, batch, 2 * size)  # [h̃; c̃]
        attending = steps if key_inputs is not None else 0
        keys = past.new_empty(attending, batch, size)
        exponentials = past.new_empty(attending, batch, slots)  # exp(a − max a)
        normalisers = past.new_empty(attending, batch, 1)  # Σ g exp(a − max a) + ε
        attention = past.new_empty(attending, batch, slots)  # s
        activations = past.new_empty(steps, batch, 4 * size)  # σ(i), σ(f), tanh(ĉ), σ(o)
        hidden_normed = past.new_empty(steps, batch, 4 * size)
        cell_normed, shown = past.new_empty(2, steps, batch, size)
        hidden_scale, cell_scale = past.new_empty(2, steps, batch, 1)
        epsilon = attention_epsilon(past.dtype)
        for t in range(steps):
            before, summary = tape[slots + t - 1], summaries[t]
            if key_inputs is None:
                summary.copy_(before)
            else:
                assert key_weight is not None
                window = tape[t : t + slots].transpose(0, 1)  # (B, N, 2H)
                key = torch.addmm(key_inputs[t], _masked(before[:, :size], key_in, t), key_weight.t(), out=keys[t])
                if key_out is not None:
                    key.mul_(key_out[t])
                scores = torch.bmm(window[..., :size], key[:, :, None] / math.sqrt(size)).squeeze(2)  # (B, N)
                torch.sub(scores, scores.amax(-1, keepdim=True), out=exponentials[t]).exp_()
                weights = torch.mul(exponentials[t], gates[t], out=attention[t])
                torch.sum(weights, -1, keepdim=True, out=normalisers[t])
                weights.div_(normalisers[t].add_(epsilon))
                torch.bmm(_masked(weights, attention_mask, t)[:, None], window, out=summary[:, None])
            recalled = summary[:, :size] if recurrent_mask is None else summary[:, :size] * recurrent_mask
            update = torch.addmm(hidden_bias, recalled, hidden_weight.t())  # (B, 4H)
            normalise(update, released, hidden_normed[t], hidden_scale[t])
            torch.addcmul(gate_inputs[t], hidden_normed[t], hidden_gain, out=update).add_(hidden_shift)
            active = torch.sigmoid(update, out=activations[t])
            torch.tanh(update[:, 2 * size : 3 * size], out=active[:, 2 * size : 3 * size])
            write, keep, candidate, show = active.chunk(4, -1)
            hidden, cell = tape[slots + t].chunk(2, -1)
            torch.mul(keep, summary[:, size:], out=cell).addcmul_(write, candidate)
            normalise(cell, released, cell_normed[t], cell_scale[t])
            torch.addcmul(cell_shift, cell_normed[t], cell_gain, out=shown[t]).tanh_()
            torch.mul(show, shown[t], out=hidden)
        ctx.released = released
        ctx.save_for_backward(
            tape, gates, summaries, attention, exponentials, normalisers, keys, activations, hidden_normed, cell_normed,
            shown, hidden_scale, cell_scale, key_weight, hidden_weight, hidden_gain, cell_gain, key_in, key_out,
            attention_mask, recurrent_mask,
        )  # fmt: skip
        ctx.mark_non_differentiable(attention)
        return tape, attention

    @staticmethod
    @backward_without_autocast
    def backward(ctx: Any, grad_tape: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        (
            tape, gates, summaries, attention, exponentials, normalisers, keys, activations, hidden_normed, cell_normed,
            shown, hidden_scale, cell_scale, key_weight, hidden_weight, hidden_gain, cell_gain, key_in, key_out,
            attention_mask, recurrent_mask,
        ) = ctx.saved_tensors  # fmt: skip
        (steps, batch, slots), size = gates.shape, hidden_weight.shape[1]
        write, keep, candidate, show = activations.chunk(4, -1)
        # What does not depend on the walk is computed for all steps at once.
        by_cell = torch.stack(  # (T, B, 3, H): ∂c_t to the gates i, f and ĉ
            [candidate * write * (1 - write), summaries[..., size:] * keep * (1 - keep), write * (1 - candidate**2)], 2
        )
        by_hidden = torch.stack(
            [shown * show * (1 - show), show * (1 - shown**2)], 2
        )  # (T, B, 2, H): ∂h_t to o and tanh
        hidden_kappa, cell_kappa = (
            kappa(scale, n, ctx.released) for scale, n in ((hidden_scale, 4 * size), (cell_scale, size))
        )
        relative, strongest = exponentials / normalisers, exponentials.argmax(-1, keepdim=True)
        d_tape = grad_tape.clone()
        d_gates = torch.zeros_like(gates)
        d_keys, d_shown = torch.empty_like(keys), torch.empty_like(shown)
        d_updates, d_products = torch.empty_like(activations), torch.empty_like(activations)
        d_summary = tape.new_empty(batch, 2 * size)
        for t in reversed(range(steps)):
            d_hidden, d_cell = d_tape[slots + t].chunk(2, -1)
            torch.mul(d_hidden, by_hidden[t, :, 0], out=d_updates[t, :, 3 * size :])
            torch.mul(d_hidden, by_hidden[t, :, 1], out=d_shown[t])
            d_cell += normalise_backward(d_shown[t] * cell_gain, cell_normed[t], cell_scale[t], cell_kappa[t])
            torch.mul(by_cell[t], d_cell[:, None], out=d_updates[t, :, : 3 * size].unflatten(-1, (3, size)))
            d_products[t] = normalise_backward(
                d_updates[t] * hidden_gain, hidden_normed[t], hidden_scale[t], hidden_kappa[t]
            )
            torch.mm(d_products[t], hidden_weight, out=d_summary[:, :size])
            if recurrent_mask is not None:
                d_summary[:, :size].mul_(recurrent_mask)
            torch.mul(d_cell, keep[t], out=d_summary[:, size:])
            if key_weight is None:
                d_tape[slots + t - 1] += d_summary
                continue
            window, d_window = tape[t : t + slots].transpose(0, 1), d_tape[t : t + slots]  # (B, N, 2H), (N, B, 2H)
            d_attention = _masked(torch.bmm(window, d_summary[:, :, None]).squeeze(2), attention_mask, t)  # (B, N)
            d_attention -= (d_attention * attention[t]).sum(-1, keepdim=True)
            torch.mul(relative[t], d_attention, out=d_gates[t])
            d_scores = d_attention.mul_(attention[t])
            d_scores.scatter_add_(1, strongest[t], -d_scores.sum(-1, keepdim=True)).div_(math.sqrt(size))
            d_window.addcmul_(_masked(attention[t], attention_mask, t).t()[..., None], d_summary)
            d_window[..., :size].addcmul_(d_scores.t()[..., None], keys[t])
            torch.bmm(d_scores[:, None], window[..., :size], out=d_keys[t][:, None])
            if key_out is not None:
                d_keys[t].mul_(key_out[t])
            d_tape[slots + t - 1, :, :size] += _masked(torch.mm(d_keys[t], key_weight), key_in, t)
        previous = _masked(tape[slots - 1 : -1, :, :size], key_in)  # (T, B, H): h_{t−1} as the key saw it
        recalled = summaries[..., :size] if recurrent_mask is None else summaries[..., :size] * recurrent_mask
        rows = d_products.flatten(0, 1)
        return (
            None,
            d_updates,
            None if key_weight is None else d_keys,
            d_gates,
            d_tape[:slots],
            None if key_weight is None else d_keys.flatten(0, 1).t() @ previous.flatten(0, 1),
            rows.t() @ recalled.flatten(0, 1),
            rows.sum(0),
            (d_updates * hidden_normed).sum((0, 1)),
            d_updates.sum((0, 1)),
            (d_shown * cell_normed).sum((0, 1)),
            d_shown.sum((0, 1)),
            None,
            None,
            None,
            None,
        )


def _masked(x: Tensor, mask: Tensor | None, t: int | None = None) -> Tensor:
    return x if mask is None else x * (mask if t is None else mask[t])
