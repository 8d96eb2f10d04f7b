"""Parsing network: syntactic distances from embeddings alone, and the gates they imply.

    h_t      = ReLU(W_c [e_{t−L}; …; e_t] + b_c)                        (eq. 7, batch norm before the ReLU)
    d_t      = act(W_d h_t + b_d),  d'_{t+1} = act(W'_d h_t + b'_d)      (eq. 8 and 13)
    α_j^t    = α(d_t − d_j)                                              (eq. 6)
    g_i^t    = Π_{j=i+1}^{t−1} α_j^t                                     (eq. 5) steers the reading of x_t
    g_i^{t+1} = Π_{j=i+1}^{t} α(d'_{t+1} − d_j)                          steers the prediction of x_{t+1}

No recurrence: distances and gates of a whole chunk are known before anything is read.

    # T time, B batch, E embedding, H channels, N memory slots, R real positions, L look-back; oldest slot first
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prpn import kernels
from prpn.config import ModelConfig
from prpn.kernels.autocast import heeding_autocast
from prpn.kernels.convolution import convolve, lying_by_time
from prpn.kernels.native_stick import native_stick
from prpn.model.layers import BatchNorm, dropout, place_rows, select_rows


@dataclass(frozen=True)
class Parse:
    """Everything the parsing network says about a chunk."""

    scores: Tensor  # (T, B, 2) the two distances before their activation: what trees are built from
    distances: Tensor  # (T, B) d_t
    next_distances: Tensor  # (T, B) d'_{t+1}
    reading_gates: Tensor  # (T, B, N) gate of h_{t−N} … h_{t−1} while x_t is read
    predict_gates: Tensor  # (T, B, N) gate of the same states while x_{t+1} is predicted
    embedding_tape: Tensor  # (L + T, B, E)
    distance_tape: Tensor  # (N + T, B)


class ParsingNetwork(nn.Module):
    """Distances by convolution, gates by comparing distances."""

    distance_scale: Tensor
    """Standard deviation of d_t before its activation in held-out text; 0 before it was measured."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.convolution = nn.Conv1d(config.embedding, config.hidden, config.lookback + 1)
        self.convolution.weight = lying_by_time(self.convolution.weight)
        self.norm = BatchNorm(config.hidden, "relu")
        self.heads = nn.Conv1d(config.hidden, 2, 1, groups=config.head_groups)
        self.register_buffer("distance_scale", torch.zeros(()))

    @heeding_autocast
    def forward(
        self, embeddings: Tensor, past_embeddings: Tensor, past_distances: Tensor, mask: Tensor | None = None
    ) -> Parse:
        """Parse embeddings (T, B, E) after the past ones (L, B, E), whose last distances are (N, B)."""
        slots, released = len(past_distances), self.config.flavour == "released"
        embedding_tape = torch.cat([past_embeddings, embeddings])  # (L + T, B, E)
        scores = self.scores(embedding_tape, mask)  # (T, B, 2)
        distances, next_distances = (scores.sigmoid() if released else scores.relu()).unbind(-1)  # (T, B) each
        distance_tape = torch.cat([past_distances, distances])  # (N + T, B)
        last_distances = distance_tape[1:].unfold(0, slots, 1)  # (T, B, N): d_{t−N+1} … d_t
        alpha = gate_factors(distances[..., None] - last_distances, self.config)  # (T, B, N)
        if not released:  # no factor belongs to d_t itself; the released code keeps it (1 if hard, sigmoid(5) if soft)
            alpha = torch.cat([alpha[..., :-1], torch.ones_like(alpha[..., -1:])], -1)
        next_alpha = gate_factors(next_distances[..., None] - last_distances, self.config)  # (T, B, N)
        return Parse(
            scores, distances, next_distances, stick(alpha), stick(next_alpha), embedding_tape, distance_tape
        )  # fmt: skip

    @heeding_autocast
    def scores(self, embedding_tape: Tensor, mask: Tensor | None = None) -> Tensor:
        """Both distances before their activation (T, B, 2), from L past and T present embeddings."""
        drop = self.config.dropout_between
        window = dropout(embedding_tape, drop, self.training)
        channels = select_rows(self.convolve(window), mask)  # (R, H)
        channels = dropout(self.norm(channels), drop, self.training)  # h_t
        weight = self.heads.weight.squeeze(-1)  # (2, H), or (2, H/2) where each head reads its half of the channels
        weight = torch.block_diag(*weight.split(1)) if self.config.head_groups == 2 else weight
        scores = F.linear(channels, weight, self.heads.bias)  # (R, 2)
        return place_rows(scores, mask, embedding_tape.shape[1])

    def convolve(self, window: Tensor) -> Tensor:
        """W_c [e_{t−L}; …; e_t] + b_c (T, B, H), from embeddings (L + T, B, E)."""
        weight, bias = self.convolution.weight, self.convolution.bias
        assert bias is not None
        if kernels.in_use() != "autograd":
            return convolve(window, weight, bias)
        steps = len(window) - self.config.lookback
        return sum((F.linear(window[k : k + steps], w) for k, w in enumerate(weight.unbind(-1))), bias)


class PlainGates(nn.Module):
    """The ablation without a parsing network: every state that was really seen is open, every other slot closed."""

    def forward(
        self, embeddings: Tensor, past_embeddings: Tensor, past_distances: Tensor, mask: Tensor | None = None
    ) -> Parse:
        """As `ParsingNetwork.forward`; all distances are 0, which also marks a position as seen."""
        distances = embeddings.new_zeros(embeddings.shape[:2])
        distance_tape = torch.cat([past_distances, distances])
        gates = distance_tape[:-1].unfold(0, len(past_distances), 1).isfinite().to(embeddings.dtype)  # (T, B, N)
        embedding_tape = torch.cat([past_embeddings, embeddings])
        scores = torch.stack([distances, distances], -1)
        return Parse(scores, distances, distances, gates, gates, embedding_tape, distance_tape)


def gate_factors(difference: Tensor, config: ModelConfig) -> Tensor:
    """α(Δ): near 0 where the earlier distance is larger, so that a bigger constituent started there.

    paper:    (hardtanh(τΔ) + 1) / 2, or τΔ / 2 + ½ held in [0, 1]               soft: (tanh(τΔ) + 1) / 2 = sigmoid(2τΔ)
    released: (hardtanh(2τΔ + 1) + 1) / 2, or τΔ + 1 held there, so 1 at ties   soft: sigmoid(10τΔ + 5)
    τ = ∞:    1 where Δ ≥ 0, by comparison, since 0·∞ is not a number
    """
    temperature, soft = config.temperature, config.gates == "soft"
    if temperature == torch.inf:
        return (difference >= 0).to(difference.dtype)
    if config.flavour == "released":
        if soft:
            return torch.sigmoid(10 * (temperature * difference) + 5)
        return F.hardtanh(temperature * difference + 1, 0, 1)
    if soft:
        return torch.sigmoid(2 * (temperature * difference))
    return F.hardtanh(temperature / 2 * difference + 0.5, 0, 1)


def stick(alpha: Tensor) -> Tensor:
    """Gates from factors (…, N): slot i is the product of the factors from i to the newest."""
    if kernels.native_reads(alpha):
        return native_stick(alpha)
    return alpha.flip(-1).cumprod(-1).flip(-1)
