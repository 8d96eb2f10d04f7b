"""Reading network: an LSTM that reads its own past through structured attention, one layer at a time.

    k_t        = W_h h_{t−1} + W_x x_t                                        (eq. 9)
    s^t        = structured attention of k_t over h_{t−N} … h_{t−1} under g^t   (eq. 10 and 11)
    [h̃_t; c̃_t] = Σ_i s_i^t [h_i; c_i]                                          (eq. 12)
    i, f, ĉ, o = LN(W_i x_t) + LN(W_h h̃_t)
    c_t        = σ(f) c̃_t + σ(i) tanh(ĉ),   h_t = σ(o) tanh(LN(c_t))

Layers depend on each other only through h at the same t, so one layer runs over the whole chunk before the next: all
products with x_t are taken out of the recurrence, which keeps two small ones per step.

    # T time, B batch, N memory slots, I input, H hidden; oldest slot first
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prpn import kernels
from prpn.config import ModelConfig
from prpn.kernels.autocast import heeding_autocast
from prpn.kernels.native_recurrence import HashedMasks, native_recurrence
from prpn.kernels.products import linear, split_columns
from prpn.kernels.recurrence import fast_recurrence
from prpn.model.attention import structured_attention
from prpn.model.layers import LayerNorm, Linear, dropout, dropout_mask


@dataclass(frozen=True)
class Tapes:
    """Every state of a layer, the past ones first, and how attention was spread at each step."""

    hidden: Tensor  # (N + T, B, H)
    cells: Tensor  # (N + T, B, H)
    attention: Tensor | None  # (T, B, N), to look at: no gradient goes through it
    now: Tensor  # (T, B, H) h_t, the last T of `hidden`


@dataclass(frozen=True)
class Masks:
    """Dropout masks inside the recurrence, drawn before it starts; None where nothing is dropped."""

    key_in: Tensor | None  # (T, B, H) on h_{t−1} before the key projection
    key_out: Tensor | None  # (T, B, H) on the key
    attention: Tensor | None  # (T, B, N) on the attention weights
    recurrent: Tensor | None  # (H,) on h̃: one mask a layer and chunk


class Rates(NamedTuple):
    """Dropout rates inside the recurrence."""

    key: float
    attention: float
    recurrent: float


class ReadingLayer(nn.Module):
    """One recurrent layer; without `reading_attention` a layer-normalised LSTM."""

    def __init__(self, config: ModelConfig, first: bool) -> None:
        super().__init__()
        inputs, hidden = config.embedding if first else config.hidden, config.hidden
        self.config = config
        self.input_dropout = config.dropout_in_out if first else config.dropout_between
        self.input_gates = Linear(inputs, 4 * hidden)
        self.input_norm = LayerNorm(4 * hidden, config.flavour)
        self.hidden_gates = Linear(hidden, 4 * hidden)
        self.hidden_norm = LayerNorm(4 * hidden, config.flavour)
        self.cell_norm = LayerNorm(hidden, config.flavour)
        if config.reading_attention:
            self.key = Linear(inputs + hidden, hidden)

    @heeding_autocast
    def forward(self, inputs: Tensor, gates: Tensor, past_hidden: Tensor, past_cells: Tensor) -> Tapes:
        """Read inputs (T, B, I) under gates (T, B, N), after the past states (N, B, H)."""
        dropped = dropout(inputs, self.input_dropout, self.training, self.config.dropout_locked)
        gate_inputs = self.input_gates(dropped)  # (T, B, 4H), to be normalised in the recurrence
        key_inputs = key_weight = None
        if self.config.reading_attention:
            dropped = dropout(inputs, self.config.dropout_between, self.training)
            input_weight, key_weight = split_columns(self.key.weight, inputs.shape[-1])  # W_x, W_h
            key_inputs = linear(dropped, input_weight, self.key.bias)  # (T, B, H)
        given = (self, gate_inputs, key_inputs, key_weight, gates, past_hidden, past_cells)
        if kernels.native_reads(gate_inputs):
            hashed = HashedMasks.draw(self.dropout_rates, past_hidden)
            return native_recurrence(*given, hashed)
        read = recurrence if kernels.in_use() == "autograd" else fast_recurrence
        return read(*given, self.draw_masks(gates, past_hidden))

    @property
    def recurrent_weights(self) -> tuple[Tensor, ...]:
        """What the recurrence needs besides W_h: hidden gates (some dropped), their norm, the cell's norm."""
        hidden, norm, cell = self.hidden_gates, self.hidden_norm, self.cell_norm
        weight = dropout(hidden.weight, self.config.dropout_weights, self.training)
        return weight, hidden.bias, norm.gain, norm.bias, cell.gain, cell.bias

    @property
    def dropout_rates(self) -> Rates:
        """How much is dropped inside the recurrence; nothing in evaluation mode."""
        if not self.training:
            return Rates(0.0, 0.0, 0.0)
        config = self.config
        key = config.dropout_between if config.reading_attention else 0.0
        return Rates(key, config.dropout_attention, config.dropout_recurrent)

    def draw_masks(self, gates: Tensor, past_hidden: Tensor) -> Masks:
        """The masks of one chunk."""
        rates, (steps, batch, _), size = self.dropout_rates, gates.shape, past_hidden.shape[-1]

        def mask(rate: float, *shape: int) -> Tensor | None:
            return dropout_mask(past_hidden, shape, rate) if rate > 0 else None

        return Masks(
            key_in=mask(rates.key, steps, batch, size),
            key_out=mask(rates.key, steps, batch, size),
            attention=mask(rates.attention, *gates.shape),
            recurrent=mask(rates.recurrent, size),
        )


def recurrence(
    layer: ReadingLayer,
    gate_inputs: Tensor,
    key_inputs: Tensor | None,
    key_weight: Tensor | None,
    gates: Tensor,
    past_hidden: Tensor,
    past_cells: Tensor,
    masks: Masks,
) -> Tapes:
    """The loop over time, as the equations have it; the kernels compute the same.

    The key is split: W_x x_t (T, B, H) and W_h (H, H), both None without attention.
    """
    steps, _, slots = gates.shape
    hidden, cells, attentions = list(past_hidden.unbind()), list(past_cells.unbind()), []

    def masked(x: Tensor, mask: Tensor | None) -> Tensor:
        return x if mask is None else x * mask

    def at(mask: Tensor | None, t: int) -> Tensor | None:
        return None if mask is None else mask[t]

    normed_inputs, (hidden_weight, hidden_bias, *_) = layer.input_norm(gate_inputs), layer.recurrent_weights
    for t in range(steps):
        summary, cell_summary = hidden[-1], cells[-1]
        if key_inputs is not None and key_weight is not None:
            key = key_inputs[t] + F.linear(masked(hidden[-1], at(masks.key_in, t)), key_weight)
            key = masked(key, at(masks.key_out, t))  # (B, H): k_t
            memory = torch.stack(hidden[t : t + slots], 1)  # (B, N, H)
            cell_memory = torch.stack(cells[t : t + slots], 1)  # (B, N, H)
            scores = torch.einsum("bnh,bh->bn", memory, key) / math.sqrt(layer.config.hidden)
            attention = structured_attention(scores, gates[t])  # (B, N): s^t
            attentions.append(attention.detach())
            attention = masked(attention, at(masks.attention, t))
            summary = torch.einsum("bn,bnh->bh", attention, memory)  # h̃_t
            cell_summary = torch.einsum("bn,bnh->bh", attention, cell_memory)  # c̃_t
        recalled = linear(masked(summary, masks.recurrent), hidden_weight, hidden_bias)  # (B, 4H)
        update = normed_inputs[t] + layer.hidden_norm(recalled)
        write, keep, candidate, show = update.chunk(4, -1)  # (B, H) each: i, f, ĉ, o
        cell = keep.sigmoid() * cell_summary + write.sigmoid() * candidate.tanh()
        hidden.append(show.sigmoid() * layer.cell_norm(cell).tanh())
        cells.append(cell)
    tape = torch.stack(hidden)
    return Tapes(tape, torch.stack(cells), torch.stack(attentions) if attentions else None, tape[slots:])
