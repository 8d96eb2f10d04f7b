"""The continuous cache, straight from its equations, one token at a time.

p(w_t)       = (1 − λ) p_model(w_t) + λ p_cache(w_t)
p_cache(w_t) = Σ_{t−K ≤ i < t} exp(θ h_t · h_i) [w_i = w_t] / Σ_{t−K ≤ i < t} exp(θ h_t · h_i)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Vector = Sequence[float]


def cache_probability(
    features: Sequence[Vector], tokens: Sequence[int], t: int, token: int, size: int, theta: float
) -> float:
    """Of this token at position t > 0."""
    matching = total = 0.0
    for i in range(max(0, t - size), t):
        likeness = math.exp(theta * sum(a * b for a, b in zip(features[t], features[i], strict=True)))
        total += likeness
        if tokens[i] == token:
            matching += likeness
    return matching / total


def mixed(
    probabilities: Sequence[float],
    features: Sequence[Vector],
    tokens: Sequence[int],
    size: int,
    theta: float,
    weight: float,
) -> list[float]:
    return [
        p if t == 0 else (1 - weight) * p + weight * cache_probability(features, tokens, t, tokens[t], size, theta)
        for t, p in enumerate(probabilities)
    ]
