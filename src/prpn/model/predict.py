"""Predict network: the next token from h_t and a structured summary of the states it may depend on.

    k_t         = W h_t
    s           = structured attention of k_t over h_{t−N} … h_{t−1} under the predict gates
    h_{l:t−1}   = Σ_i s_i h_i
    f̂           = tanh(BN(W_o · residual blocks([h_t; h_{l:t−1}])))                    (eq. 14)
    block(x)    = ReLU(x + BN(W_2 ReLU(BN(W_1 x))))

No recurrence: all time steps at once. The attention is a band of width N in a T × (N + T) product.

    # T time, B batch, N memory slots, H hidden, E embedding, R real positions; oldest slot first
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from prpn import kernels
from prpn.config import ModelConfig
from prpn.kernels.autocast import heeding_autocast
from prpn.kernels.native_attention import native_attention
from prpn.model.attention import structured_attention
from prpn.model.layers import BatchNorm, Linear, dropout, dropout_of_rows, select_rows
from prpn.model.reading import Tapes

BLOCK = 256
"""Steps attended at once, so that a very long sentence costs time in proportion to its length."""


class ResidualBlock(nn.Module):
    """Two normalised linear maps around which the input is added."""

    def __init__(self, width: int, dropout_rate: float) -> None:
        super().__init__()
        self.linear1, self.norm1 = Linear(width, width), BatchNorm(width, "relu")
        self.linear2, self.norm2 = Linear(width, width), BatchNorm(width)
        self.dropout_rate = dropout_rate

    def forward(self, rows: Tensor) -> Tensor:
        """Map (R, width) to the same shape."""
        inner = dropout(self.norm1(self.linear1(rows)), self.dropout_rate, self.training)
        return (rows + self.norm2(self.linear2(inner))).relu()


class PredictNetwork(nn.Module):
    """Attention with the predict gates, then f̂."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        width = config.hidden * (2 if config.predict_attention else 1)
        if config.predict_attention:
            self.key = Linear(config.hidden, config.hidden)
        self.residual = nn.ModuleList(
            ResidualBlock(width, config.dropout_between) for _ in range(config.residual_blocks)
        )
        self.output = Linear(width, config.embedding)
        self.output_norm = BatchNorm(config.embedding, "tanh")

    @heeding_autocast
    def forward(self, tapes: Tapes, gates: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Features (R, E) of the real positions and attention (T, B, N), from what the last layer left."""
        now = tapes.now  # (T, B, H): h_t
        attention = None
        if self.config.predict_attention:
            attention, with_summary = self.summarise(tapes.hidden, now, gates)
            rows = select_rows(with_summary, mask)  # (R, 2H)
        else:
            rows = select_rows(now, mask)  # (R, H)
        for block in self.residual:
            rows = block(rows)
        rows = dropout_of_rows(
            rows, mask, now.shape[1], self.config.dropout_between, self.training, self.config.dropout_locked
        )
        return self.output_norm(self.output(rows)), attention

    def summarise(self, hidden_tape: Tensor, now: Tensor, gates: Tensor) -> tuple[Tensor, Tensor]:
        """Weights (T, B, N), to look at, and [h_t; h_{l:t−1}] (T, B, 2H), from the tape (N + T, B, H) and h_t."""
        slots, drop = self.config.memory_slots, self.config.dropout_between
        keys = dropout(self.key(dropout(now, drop, self.training)), drop, self.training)
        if kernels.native_reads(keys):
            return native_attention(hidden_tape, keys, gates, self.config.dropout_attention if self.training else 0.0)
        blocks = [
            self._attend(hidden_tape[start : start + slots + BLOCK], keys[start : start + BLOCK], block_gates)
            for start, block_gates in zip(range(0, len(gates), BLOCK), gates.split(BLOCK), strict=True)
        ]
        attention, summaries = zip(*blocks, strict=True)
        return torch.cat(attention), torch.cat([now, torch.cat(summaries)], -1)

    def _attend(self, hidden_tape: Tensor, keys: Tensor, gates: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and summaries of a block of steps, keys (T, B, H): the band is cut out of a full product."""
        steps, _, slots = gates.shape
        by_stream = hidden_tape[: slots + steps].transpose(0, 1)  # (B, N + T, H)
        scores = torch.bmm(keys.transpose(0, 1), by_stream.mT) / math.sqrt(self.config.hidden)  # (B, T, N + T)
        band = torch.arange(steps)[:, None] + torch.arange(slots)  # (T, N): slot n of step t is tape row t + n
        band = band.to(scores.device).expand(len(scores), -1, -1)  # (B, T, N)
        weights = structured_attention(scores.gather(2, band), gates.transpose(0, 1))  # (B, T, N)
        kept = dropout(weights, self.config.dropout_attention, self.training)
        spread = torch.zeros_like(scores).scatter(2, band, kept)  # (B, T, N + T)
        return weights.detach().transpose(0, 1), torch.bmm(spread, by_stream).transpose(0, 1)
