"""How far back a word reaches: from syntactic distances to gates, one slot at a time.

α_j^t = (hardtanh((d_t − d_j) τ) + 1) / 2             paper, hard; its smooth counterpart has tanh
α_j^t = (hardtanh(2 (d_t − d_j) / r + 1) + 1) / 2     released, hard, r = 1/τ: 1 at a tie, 0 from d_t = d_j − r down
α_j^t = sigmoid(10 (d_t − d_j) / r + 5)               released, soft
α_j^t = 1 if d_t ≥ d_j else 0                         τ = ∞, every flavour; a comparison, for 0 · ∞ is no number

g_i^t     = Π_{j=i+1}^{t−1} α_j^t           reading, paper: g_{t−1}^t = 1
g_i^t     = Π_{j=i+1}^{t}   α_j^t           reading, released: α_t^t = α(d_t − d_t) too; 1 if hard, sigmoid(5) if soft
g_i^{t+1} = Π_{j=i+1}^{t}   α(d'_{t+1} − d_j)   predict, both: h_{t−1} is gated by α(d'_{t+1} − d_t)

p(l_t = i) = (1 − α_i^t) Π_{j=i+1}^{t−1} α_j^t for 0 < i < t,   p(l_t = 0) = Π_{j=1}^{t−1} α_j^t
l_t        = max i < t with d_i > d_t, else 0         τ = ∞

Slots are numbered oldest first: at time t, slot k of N_m holds position i = t − N_m + k. Distances before the start
are +∞, so every slot older than the position just before the start is closed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


def alpha(distance_now: Tensor, distance_then: Tensor, flavour: str, gates_kind: str, temperature: float) -> Tensor:
    """α for the distance d_t (or d'_{t+1}) against an earlier d_j, element by element."""
    if math.isinf(temperature):
        return (distance_now >= distance_then).to(distance_now.dtype)
    difference = (distance_now - distance_then) * temperature  # -inf before the start
    if flavour == "paper":
        return ((F.hardtanh(difference) if gates_kind == "hard" else torch.tanh(difference)) + 1) / 2
    if gates_kind == "hard":
        return (F.hardtanh(2 * difference + 1) + 1) / 2
    return torch.sigmoid(10 * difference + 5)


def distance_at(distances: Tensor, position: int) -> Tensor:
    """d_j, which is +∞ before the start; `distances` is (T, ...), time first."""
    if position < 0:
        return torch.full_like(distances[0], math.inf)  # (...)
    return distances[position]  # (...)


def reading_gates(
    distances: Tensor, t: int, slots: int, flavour: str, gates_kind: str, temperature: float
) -> list[Tensor]:
    """g_i^t of the slots i = t − N_m … t − 1, oldest first, each (...), from distances (T, ...)."""
    last = t if flavour == "released" else t - 1
    return _gates(distances[t], distances, t, last, slots, flavour, gates_kind, temperature)


def predict_gates(
    distances: Tensor, next_distance: Tensor, t: int, slots: int, flavour: str, gates_kind: str, temperature: float
) -> list[Tensor]:
    """g_i^{t+1} of the slots i = t − N_m … t − 1, oldest first, each (...), from distances (T, ...) and d'_{t+1}."""
    return _gates(next_distance, distances, t, t, slots, flavour, gates_kind, temperature)


def _gates(
    distance_now: Tensor,
    distances: Tensor,
    t: int,
    last: int,
    slots: int,
    flavour: str,
    gates_kind: str,
    temperature: float,
) -> list[Tensor]:
    gates = []
    for i in range(t - slots, t):
        gate = torch.ones_like(distance_now)  # (...)
        for j in range(i + 1, last + 1):
            gate = gate * alpha(distance_now, distance_at(distances, j), flavour, gates_kind, temperature)
        gates.append(gate)
    return gates


def seen_gates(like: Tensor, t: int, slots: int) -> list[Tensor]:
    """Without parsing network: 1 for a slot whose position was really read, 0 before the start; t counts from there."""
    return [torch.ones_like(like) if i >= 0 else torch.zeros_like(like) for i in range(t - slots, t)]


def reach_distribution(alphas: Tensor) -> Tensor:
    """p(l_t = 0), …, p(l_t = t − 1), (t, ...), by stick breaking from α_1^t, …, α_{t−1}^t, (t − 1, ...)."""
    t = alphas.shape[0] + 1
    probabilities = []
    for i in range(t):
        left = alphas.new_ones(alphas.shape[1:])  # the part of the stick that later positions leave over
        for j in range(i + 1, t):
            left = left * alphas[j - 1]
        probabilities.append(left * (1 - alphas[i - 1]) if i > 0 else left)
    return torch.stack(probabilities)


def reach_start(distances: Sequence[float], t: int) -> int:
    """l_t for τ = ∞, t ≥ 1: the nearest earlier position whose distance is larger; equal distances stay open."""
    for i in range(t - 1, 0, -1):
        if distances[i] > distances[t]:
            return i
    return 0
