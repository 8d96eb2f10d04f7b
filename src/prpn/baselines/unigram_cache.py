"""Unigram cache: a word that came up a moment ago is likely to come up again (Kuhn & De Mori 1990).

    p(w_t)       = (1 − λ) p_model(w_t) + λ p_cache(w_t)
    p_cache(w_t) = Σ_{i<t} m(t − i) [w_i = w_t] / Σ_{i<t} m(t − i)

    m(age) = 1 for age ≤ K, else 0     a window of K tokens
    m(age) = exp(−age / K)             decaying: nothing is forgotten at once; K is about the mean age

The model may be any that gives ln p of each token. The first token has no cache, so the model stands alone there.

Sorted by token and then by position, the occurrences of a token are neighbours. A window is then a range, whose
beginning is searched for; a decaying sum doubles its reach among the neighbours until it holds them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from prpn.baselines.ngram import Floats, Ids, Tokens
from prpn.errors import ConfigError
from prpn.language.mixture import best_weight, mixed

SIZES = (25, 50, 75, 100, 150, 200, 300, 400, 500, 1000, 2000)
"""Tried by default: what lies beyond is far from the best for text of any kind that we know."""


@dataclass(frozen=True)
class UnigramCache:
    """How much is remembered (K), how much it counts (λ), and whether it fades or is dropped at once."""

    size: int
    weight: float
    decaying: bool

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 <= self.weight < 1:
            raise ConfigError(
                f"a cache of {self.size} tokens that counts {self.weight}: 1 or more, and from 0 to below 1"
            )

    def mixed(self, log_probabilities: Floats, tokens: Tokens) -> Floats:
        """Give ln p of each token by the model and the cache together, from ln p by the model alone."""
        cached = cache_log_probabilities(tokens, self.size, self.decaying)
        cached[:1] = log_probabilities[:1]  # there is no cache yet
        return mixed(log_probabilities, cached, self.weight)


def tune_cache(
    log_probabilities: Floats,
    tokens: Tokens,
    sizes: Sequence[int] = SIZES,
    decaying: Sequence[bool] = (False, True),
) -> UnigramCache:
    """The cache that helps a model's ln p of these (validation) tokens most."""
    caches = []
    for size, fades in product(sizes, decaying):
        cached = cache_log_probabilities(tokens, size, fades)
        caches.append(UnigramCache(size, best_weight(log_probabilities[1:], cached[1:]), fades))
    return max(caches, key=lambda cache: float(cache.mixed(log_probabilities, tokens).sum()))


def cache_log_probabilities(tokens: Tokens, size: int, decaying: bool) -> Floats:
    """Give ln p_cache of each token; −∞ where it is not remembered."""
    age = np.arange(len(tokens))  # of the text before each token
    if decaying:
        kept = np.exp(-1 / size)
        remembered, total = _faded(tokens, size), kept * -np.expm1(-age / size) / (1 - kept)
    else:
        remembered, total = _in_window(tokens, size).astype(np.float64), age.clip(max=size).astype(np.float64)
    logs = np.full(len(tokens), -np.inf)
    np.log(remembered, out=logs, where=remembered > 0)
    logs[1:] -= np.log(total[1:])
    return logs


def _in_window(tokens: Tokens, size: int) -> Ids:
    """How often each token occurs among the `size` tokens before it."""
    position = np.arange(len(tokens))
    group = np.asarray(tokens, np.int64) * len(tokens)
    occurrences = np.sort(group + position)
    begin = np.searchsorted(occurrences, group + (position - size).clip(min=0))
    return np.searchsorted(occurrences, group + position) - begin


def _faded(tokens: Tokens, size: int) -> Floats:
    """Σ exp(−age / size) over the earlier occurrences of each token."""
    position = np.argsort(tokens, kind="stable")
    token = tokens[position]

    def fading(steps: int) -> Floats:
        """From an occurrence to the one so many steps later: m of the time between, zero if that is another token."""
        same, age = token[steps:] == token[:-steps], position[steps:] - position[:-steps]
        return np.where(same, np.exp(-age.clip(min=0) / size), 0.0)

    sums = np.ones(len(tokens))  # over an occurrence and the reach − 1 before it
    reach = 1
    while np.any(fades := fading(reach)):
        sums[reach:] += fades * sums[:-reach]  # the product is complete before any of it is added
        reach *= 2
    earlier = np.zeros(len(tokens))
    earlier[position[1:]] = fading(1) * sums[:-1]
    return earlier
