"""n-gram language model: interpolated Kneser–Ney with three discounts (Chen & Goodman 1998, "modified" Kneser–Ney).

    p_k(w | h) = (c_k(h w) − D_k(c_k(h w))) / c_k(h •) + γ_k(h) p_{k−1}(w | h')        h: the k − 1 tokens before w
    γ_k(h)     = Σ_w D_k(c_k(h w)) / c_k(h •),      or 1 where nothing followed h      h': h without its first token
    p_0(w)     = 1 / vocabulary

    c_n(g) = how often g occurs
    c_k(g) = how many different tokens occur before g  +  how often g occurs where no history is left,     k < n

    D_k(0) = 0,   D_k(c) = c − (c + 1) Y n_{c+1} / n_c for c = 1, 2,   D_k(c) = 3 − 4 Y n_4 / n_3 for c ≥ 3,
    Y = n_1 / (n_1 + 2 n_2),   n_c = how many g of length k have c_k(g) = c

Every history gets a distribution over the whole vocabulary, in which no token has the probability zero. Where one of
n_1 … n_4 is zero or a discount would not be positive (short texts; the low orders of characters, all of which are
frequent), that order takes D = 1/2, 1, 3/2, which is near what the estimate gives where there is one.

Histories run on through the text, or, with a `boundary`, begin at the last one: the sentences of a word model are
independent of each other, and `</s>` is at once the last token of one and the history of the next. What precedes the
text is a boundary too, or nothing.

An n-gram is the pair of its history, which is an n-gram one shorter, and its last token. Numbered in the order of these
pairs order by order, any length and any vocabulary fit an integer, and counting is sorting: no loop over tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prpn.errors import ConfigError, InputError

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
Tokens = NDArray[np.integer[Any]]

FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)
"""For an order whose counts of counts give no estimate."""


@dataclass(frozen=True)
class _Order:
    """The n-grams of one length, and the histories one shorter that they extend."""

    keys: Ids
    """history · vocabulary + token, sorted; the place of an n-gram in this array is its number."""
    share: Floats
    """(c(h w) − D) / c(h •) of each n-gram."""
    rest: Floats
    """γ(h) of each history."""


@dataclass(frozen=True)
class NGram:
    """A trained model; `orders` may end early where no history of the training text is long enough."""

    vocabulary_size: int
    order: int
    boundary: int | None
    orders: tuple[_Order, ...]

    @staticmethod
    def train(tokens: Tokens, vocabulary_size: int, order: int, boundary: int | None = None) -> NGram:
        """Count a text; with a `boundary` (the id of `</s>`) no history reaches back beyond the last one."""
        if order < 1 or vocabulary_size < 1:
            raise ConfigError(
                f"an n-gram model of order {order} over {vocabulary_size} tokens: both must be at least 1"
            )
        text, reach = _histories(tokens, vocabulary_size, order, boundary)
        orders: list[_Order] = []
        histories, keys, grams = 1, np.arange(vocabulary_size), text
        for length in range(order):  # of the history
            # Occurrences that no longer n-gram extends, so all of the highest order, count one each; the others count
            # one for each longer n-gram that ends in them.
            counts = np.bincount(grams[reach == length], minlength=len(keys))
            extended = np.flatnonzero(reach > length)
            pairs = grams[extended - 1] * vocabulary_size + text[extended]
            longer_keys, longer = np.unique(pairs, return_inverse=True)
            occurrence = np.empty(len(longer_keys), np.int64)
            occurrence[longer] = extended  # any one will do: they all end in the same shorter n-gram
            counts += np.bincount(grams[occurrence], minlength=len(keys))
            orders.append(_smoothed(keys, counts, keys // vocabulary_size, histories))
            if not len(longer_keys):
                break
            histories, keys, grams = len(keys), longer_keys, np.full(len(text), -1)
            grams[extended] = longer
        return NGram(vocabulary_size, order, boundary, tuple(orders))

    def log_probabilities(self, tokens: Tokens) -> Floats:
        """Give ln p of each token of a text, given those before it."""
        text, reach = _histories(tokens, self.vocabulary_size, self.order, self.boundary)
        probabilities = np.full(len(text), 1 / self.vocabulary_size)
        grams = np.zeros(len(text), np.int64)  # of no length: there is one
        for length, order in enumerate(self.orders):
            history = np.where(reach >= length, np.roll(grams, 1), -1) if length else grams
            known = np.flatnonzero(history >= 0)
            pairs = history[known] * self.vocabulary_size + text[known]
            found = np.searchsorted(order.keys, pairs).clip(max=len(order.keys) - 1)
            seen = order.keys[found] == pairs
            shares = np.where(seen, order.share[found], 0.0)
            probabilities[known] = shares + order.rest[history[known]] * probabilities[known]
            grams = np.full(len(text), -1)
            grams[known[seen]] = found[seen]
        return np.log(probabilities[len(text) - len(tokens) :])

    def perplexity(self, tokens: Tokens) -> float:
        """Read a text and say how well it was predicted, token by token."""
        return perplexity(self.log_probabilities(tokens))


def perplexity(log_probabilities: Floats) -> float:
    """How many equally likely tokens the model was in doubt between, on average: exp of the mean of −ln p."""
    if not len(log_probabilities):
        raise InputError("the text", "no token in it, so it has no perplexity")
    return math.exp(-log_probabilities.mean())


def discounts(counts: Ids) -> Floats:
    """D(0), D(1), D(2) and D(3 or more), from the counts of one order."""
    n = np.bincount(counts.clip(max=5), minlength=6).tolist()  # n[c] n-grams are counted c times; n[5]: more than four
    if all(n[1:5]):
        y = n[1] / (n[1] + 2 * n[2])
        estimate = [c - (c + 1) * y * n[c + 1] / n[c] for c in (1, 2, 3)]
        if min(estimate) > 0:
            return np.array([0.0, *estimate])
    return np.array([0.0, *FALLBACK_DISCOUNTS])


def _smoothed(keys: Ids, counts: Ids, history: Ids, histories: int) -> _Order:
    taken = discounts(counts)[counts.clip(max=3)]
    total = np.bincount(history, counts, histories)  # c(h •)
    some = total.clip(min=1)  # where nothing followed, there is nothing to divide
    rest = np.where(total > 0, np.bincount(history, taken, histories) / some, 1.0)
    return _Order(keys, (counts - taken) / some[history], rest)


def _histories(tokens: Tokens, vocabulary_size: int, order: int, boundary: int | None) -> tuple[Ids, Ids]:
    """The text, with the boundary before it if there is one, and how many tokens the history of each one has.

    The boundary before the text is never predicted; its −1 says so.
    """
    if len(tokens) and not (tokens.min() >= 0 and tokens.max() < vocabulary_size):
        raise InputError("the text", f"a token that is none of the {vocabulary_size} of the vocabulary")
    text = np.array(tokens, dtype=np.int64)
    if boundary is None:
        return text, np.arange(len(text)).clip(max=order - 1)
    if not 0 <= boundary < vocabulary_size:
        raise ConfigError(f"the boundary {boundary} is none of the {vocabulary_size} tokens of the vocabulary")
    text = np.concatenate([[boundary], text])
    places = np.arange(len(text))
    last = np.maximum.accumulate(np.where(text == boundary, places, 0))
    return text, np.concatenate([[-1], (places[1:] - last[:-1]).clip(max=order - 1)])
