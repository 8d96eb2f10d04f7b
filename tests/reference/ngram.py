"""Interpolated Kneser–Ney with three discounts, straight from the equations, with dictionaries and loops.

    p_k(w | h) = (c_k(h w) − D_k(c_k(h w))) / c_k(h •) + γ_k(h) p_{k−1}(w | h')
    γ_k(h)     = (D_k(1) N_1(h •) + D_k(2) N_2(h •) + D_k(3) N_3+(h •)) / c_k(h •)

c_n counts occurrences; c_k, k < n, counts the different tokens before an n-gram, plus its occurrences before which
there is no token that belongs to its history. p_0 is uniform; an order in which h was never seen is left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

Gram = tuple[int, ...]


def history(tokens: Sequence[int], t: int, longest: int, boundary: int | None) -> Gram:
    """The tokens before position t, at most so many, and none before the last boundary."""
    found: Gram = ()
    while len(found) < longest and t > 0:
        t -= 1
        found = (tokens[t], *found)
        if tokens[t] == boundary:
            return found
    if len(found) < longest and boundary is not None:  # the text begins after a boundary
        return (boundary, *found)
    return found


def discounts(counts: Mapping[Gram, int]) -> dict[int, float]:
    n = Counter(counts.values())
    if n[1] and n[2] and n[3] and n[4]:
        y = n[1] / (n[1] + 2 * n[2])
        d = {1: 1 - 2 * y * n[2] / n[1], 2: 2 - 3 * y * n[3] / n[2], 3: 3 - 4 * y * n[4] / n[3]}
        if d[1] > 0 and d[2] > 0 and d[3] > 0:
            return d
    return {1: 0.5, 2: 1.0, 3: 1.5}


class ReferenceNGram:
    def __init__(self, tokens: Sequence[int], vocabulary_size: int, order: int, boundary: int | None) -> None:
        self.vocabulary_size, self.order, self.boundary = vocabulary_size, order, boundary
        self.counts: dict[int, dict[Gram, int]] = {}
        for k in range(1, order + 1):
            before: dict[Gram, set[int]] = defaultdict(set)
            themselves: Counter[Gram] = Counter()
            for t, token in enumerate(tokens):
                h = history(tokens, t, order - 1, boundary)
                gram = (*h[len(h) - (k - 1) :], token)
                if k < order and len(h) > k - 1:
                    before[gram].add(h[-k])
                elif len(h) >= k - 1:
                    themselves[gram] += 1
            self.counts[k] = {gram: len(before[gram]) + themselves[gram] for gram in {*before, *themselves}}
        self.discounts = {k: discounts(counts) for k, counts in self.counts.items()}

    def probability(self, token: int, h: Gram) -> float:
        """p_k(w | h), k = one more than the length of h."""
        k, d = len(h) + 1, self.discounts[len(h) + 1]
        shorter = self.probability(token, h[1:]) if h else 1 / self.vocabulary_size
        following = {gram[-1]: count for gram, count in self.counts[k].items() if gram[:-1] == h}
        total = sum(following.values())
        if total == 0:
            return shorter
        gamma = sum(d[min(count, 3)] for count in following.values()) / total
        count = following.get(token, 0)
        return (count - d[min(count, 3)] if count else 0.0) / total + gamma * shorter

    def probabilities(self, tokens: Sequence[int]) -> list[float]:
        return [
            self.probability(token, history(tokens, t, self.order - 1, self.boundary)) for t, token in enumerate(tokens)
        ]
