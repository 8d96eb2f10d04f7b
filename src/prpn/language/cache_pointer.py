"""Continuous cache (Grave, Joulin & Usunier 2017): words that followed contexts like this one are likely again.

    p(w_t)       = (1 − λ) p_model(w_t) + λ p_cache(w_t)
    p_cache(w_t) = Σ_{t−K ≤ i < t} exp(θ h_t · h_i) [w_i = w_t] / Σ_{t−K ≤ i < t} exp(θ h_t · h_i)

h_t are the features from which the decoder predicts w_t. With θ = 0 all contexts are alike: a unigram cache of K
tokens. The first token of a text has no cache, so the model stands alone there.

The text is read in blocks. All products h_t · h_i of a block with itself and the K tokens before it are one matrix
product; what lies in the window of row r begins r columns further right, so a view that skews the matrix has the
windows as its rows. The sums of several K are those of the ages between one K and the next, added up from the youngest.

    # R rows of a block, K size of the (largest) window, E embedding, S sizes, Θ thetas
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, product

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from prpn.errors import ConfigError
from prpn.language.mixture import Floats, best_weight, mixed
from prpn.training.evaluate import Reading

SIZES = (50, 100, 200, 300, 500, 700, 1000, 1500, 2000)
"""K tried by default."""
LARGEST = 100_000
"""K at most: every token is compared with as many."""
SHARPNESS = (0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0, 18.0, 22.0, 26.0, 32.0, 40.0)
"""θ tried by default, as multiples of 1 / |h|², so that the scale of a model's features does not matter."""
_NOTHING = -1
"""Stands for a token before the beginning of the text."""


@dataclass(frozen=True)
class CachePointer:
    """How many tokens are remembered (K), how much likeness counts (θ), how much the cache counts (λ)."""

    size: int
    theta: float
    weight: float

    def __post_init__(self) -> None:
        if not 1 <= self.size <= LARGEST or not 0 <= self.theta < np.inf or not 0 <= self.weight < 1:
            raise ConfigError(
                f"a cache of {self.size} tokens with theta {self.theta} and lambda {self.weight}: from 1 to "
                f"{LARGEST:,}, 0 or more, and from 0 to below 1"
            )

    def mixed(self, readings: Iterable[Reading]) -> Iterator[tuple[Floats, Floats]]:
        """Of each block of a text, ln p of its tokens by the model alone, and by model and cache together."""
        for alone, cached in with_cache(readings, [self.size], [self.theta]):
            yield alone, mixed(alone, cached[0, 0].astype(np.float64), self.weight)


@dataclass(frozen=True)
class Tuned:
    """The cache that suits a text best, and the nats a token of that text by the model alone and with it."""

    cache: CachePointer
    loss_alone: float
    loss: float


def tune(readings: Iterable[Reading], sizes: Sequence[int] = SIZES, thetas: Sequence[float] | None = None) -> Tuned:
    """Try every size with every theta on a (validation) text, each with its best weight.

    Memory grows with the text, by 4 bytes a token for each pair of size and theta.
    """
    blocks = iter(readings)
    first = next(blocks)
    if thetas is None:
        scale = float(first.features.double().square().sum(1).mean()) or 1.0
        thetas = [sharpness / scale for sharpness in SHARPNESS]
    by_model, by_cache = zip(*with_cache(chain([first], blocks), sizes, thetas), strict=True)
    alone = np.concatenate(by_model)
    best = None
    for (i, theta), (j, size) in product(enumerate(thetas), enumerate(sizes)):
        cached = np.concatenate([block[i, j] for block in by_cache]).astype(np.float64)
        weight = best_weight(alone, cached)
        loss = -float(mixed(alone, cached, weight).mean())
        if best is None or loss < best.loss:
            best = Tuned(CachePointer(size, theta, weight), -float(alone.mean()), loss)
    assert best is not None
    return best


def with_cache(
    readings: Iterable[Reading], sizes: Sequence[int], thetas: Sequence[float]
) -> Iterator[tuple[Floats, NDArray[np.floating]]]:
    """Of each block ln p by the model (R,), and ln p_cache by every theta and size (Θ, S, R).

    −∞ where the token is not in the cache; the model's own where there is no cache yet.
    """
    past_features = past_tokens = None
    for reading in readings:
        features, tokens = reading.features, reading.tokens
        if past_features is None or past_tokens is None:
            past_features, past_tokens = features[:0], tokens[:0]
        cached = cache_log_probabilities(past_features, past_tokens, features, tokens, sizes, thetas).cpu().numpy()
        alone = -reading.losses.cpu().double().numpy()
        yield alone, np.where(np.isnan(cached), alone.astype(cached.dtype), cached)
        past_features = torch.cat([past_features, features])[-max(sizes) :]
        past_tokens = torch.cat([past_tokens, tokens])[-max(sizes) :]


@torch.no_grad()
def cache_log_probabilities(
    past_features: Tensor,
    past_tokens: Tensor,
    features: Tensor,
    tokens: Tensor,
    sizes: Sequence[int],
    thetas: Sequence[float],
) -> Tensor:
    """Give ln p_cache (Θ, S, R) of tokens (R,) that were predicted from features (R, E), given a past of at most K.

    NaN where nothing came before; −∞ where the token did not. Sizes rise.
    """
    rows, reach = len(tokens), max(sizes)
    missing = reach - len(past_tokens)  # columns before the beginning of the text
    likeness = F.pad(features @ torch.cat([past_features, features]).t(), (missing, 0), value=-torch.inf)  # (R, K + R)
    likeness = likeness.as_strided((rows, reach), (reach + rows + 1, 1))  # (R, K): h_t · h_i, oldest first
    followed = F.pad(torch.cat([past_tokens, tokens]), (missing, 0), value=_NOTHING).unfold(0, reach, 1)[
        :rows
    ]  # (R, K)
    same = (followed == tokens[:, None]).to(features.dtype)  # (R, K): [w_i = w_t]
    sums = features.new_empty(2, len(thetas), len(sizes), rows)  # ln of numerator and denominator, between two sizes
    for place, (younger, older) in enumerate(pairwise([0, *sizes])):
        ages = slice(reach - older, reach - younger)
        part = likeness[:, ages]
        peak = part.amax(1).nan_to_num(neginf=0.0)  # (R,)
        below_peak = part - peak[:, None]
        for which, theta in enumerate(thetas):
            weights = below_peak.mul(theta).exp_()
            if missing:
                weights.masked_fill_(followed[:, ages] == _NOTHING, 0.0)  # also where θ = 0
            sums[0, which, place] = torch.linalg.vecdot(weights, same[:, ages]).log_() + theta * peak
            sums[1, which, place] = weights.sum(1).log_() + theta * peak
    numerator, denominator = sums.logcumsumexp(2)
    return numerator - denominator
