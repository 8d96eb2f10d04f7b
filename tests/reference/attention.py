"""Structured attention of one query over the tape.

s̃_i = h_i · k / √δ                                    δ: size of a hidden state
s_i = g_i exp(s̃_i − max_j s̃_j) / (Σ_j g_j exp(s̃_j − max_j s̃_j) + 1e-8)

The maximum is over all slots, open or closed. The paper prints s_i = g_i softmax(s̃)_i / Σ g_i, which is no
distribution; normalised over g · exp it is one, or all zero where every gate is closed. Both flavours use it so.
The gradient flows through the maximum too, which shows where all gates are small and 1e-8 counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def structured_attention(key: Tensor, tape: Sequence[Tensor], gates: Sequence[Tensor]) -> list[Tensor]:
    """Weights s_i, one (B,) per slot, of the key (B, H) over the tape, N_m of (B, H), with gates, N_m of (B,)."""
    scores = [(h * key).sum(-1) / math.sqrt(key.shape[-1]) for h in tape]  # N_m of (B,)
    largest = torch.stack(scores).max(0).values  # (B,)
    opened = [g * torch.exp(s - largest) for g, s in zip(gates, scores, strict=True)]  # N_m of (B,)
    total = sum(opened) + 1e-8  # (B,)
    return [weight / total for weight in opened]


def summary(weights: Sequence[Tensor], tape: Sequence[Tensor]) -> Tensor:
    """Σ s_i m_i: (B, H)."""
    total = torch.zeros_like(tape[0])
    for s, m in zip(weights, tape, strict=True):
        total = total + s[:, None] * m
    return total
