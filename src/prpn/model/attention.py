"""Structured attention: a softmax over past states in which gates decide how much of each state exists.

    s_i = g_i exp(a_i − max a) / (Σ_j g_j exp(a_j − max a) + ε)

The paper prints s_i = g_i s̃_i / Σ g_i, which does not sum to one; normalising over g·exp does, and is what the released
code computes. When every gate is closed all weights are 0, so the summary is the zero vector and never NaN.
"""

from __future__ import annotations

import torch
from torch import Tensor

from prpn.kernels.recurrence import attention_epsilon


def structured_attention(scores: Tensor, gates: Tensor) -> Tensor:
    """Attention weights s from scores a and gates g, both (…, N)."""
    weights = (scores - scores.amax(-1, keepdim=True)).exp() * gates
    return weights / (weights.sum(-1, keepdim=True) + attention_epsilon(gates.dtype))


def reach_distribution(gates: Tensor) -> Tensor:
    """Stick-breaking distribution p(l_t = i), of which the gates are the CDF: g_i = P(l_t ≤ i) (eq. 4 and 5).

    Gates (…, N), oldest slot first, give (…, N + 1): one probability a slot, then p(l_t = t), the share of the stick
    that no slot receives. What lies beyond the oldest slot is counted there, so the sum is 1.
    """
    nothing, everything = torch.zeros_like(gates[..., :1]), torch.ones_like(gates[..., :1])
    return torch.diff(gates, dim=-1, prepend=nothing, append=everything)  # (…, N + 1)
