"""The unigram cache, straight from its sums: p_cache(w_t) = Σ_{i<t} m(t − i) [w_i = w_t] / Σ_{i<t} m(t − i)."""

from __future__ import annotations

import math
from collections.abc import Sequence


def memory(age: int, size: int, decaying: bool) -> float:
    if decaying:
        return math.exp(-age / size)
    return 1.0 if age <= size else 0.0


def cache_probability(tokens: Sequence[int], t: int, token: int, size: int, decaying: bool) -> float:
    """Of this token at position t > 0."""
    weights = [memory(t - i, size, decaying) for i in range(t)]
    return sum(m for m, other in zip(weights, tokens[:t], strict=True) if other == token) / sum(weights)


def mixed(
    probabilities: Sequence[float], tokens: Sequence[int], size: int, weight: float, decaying: bool
) -> list[float]:
    return [
        p if t == 0 else (1 - weight) * p + weight * cache_probability(tokens, t, tokens[t], size, decaying)
        for t, p in enumerate(probabilities)
    ]
