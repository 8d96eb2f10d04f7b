"""What τ does to a trained model: how well it predicts, how deep its structure is, how clear.

Appendix D of the paper: the sharper the gates, the more levels; only at τ = ∞ do the ranges of dependency form a tree.
For the words of a sentence, with d_t the distance before x_t and α that of the model's flavour,

    g_i^t  = Π_{j=i+1}^{t−1} α(d_t − d_j)                  how open x_i is to x_t (`prpn.model.parsing`)
    l_t(τ) = the first i with g_i^t ≥ 1/2, t − 1 at most   where x_t's range begins

    levels      = the deepest word of the flattest tree that has these ranges: x_t is a child of the constituent that
                  begins at l_t, and x_i begins a constituent of its own if any l_t = i
    overlapping = the share of pairs of ranges [l_s, s), [l_t, t) of which neither holds the other: l_s < l_t < s < t

At τ = ∞ l_t is `reach_starts_from_distances` and nothing overlaps (`prpn.trees.reach`). With α = 1 everywhere (the
released gates at τ = 0) the tree is flat: one level. The memory's size plays no part in these figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prpn.config import ModelConfig
from prpn.errors import ConfigError
from prpn.model.parsing import gate_factors, stick

TEMPERATURES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, math.inf)
LONGEST = 500
"""Words of a line whose structure is measured together."""


@dataclass(frozen=True)
class Structure:
    """What the gates of a text look like at one temperature; means over sentences of two words or more."""

    levels: float
    reach: float
    """Words in the range of a word, on average."""
    overlapping: float

    def to_json(self) -> dict[str, Any]:
        """The figures by the names that scripts read."""
        return asdict(self)


def temperatures_from(values: Sequence[str]) -> list[float]:
    """Temperatures as they are given on the command line: positive numbers, `inf` among them."""
    try:
        found = [float(value) for value in values]
    except ValueError as error:
        raise ConfigError(f"--tau: {error}; give a positive number, or inf") from None
    if any(not value > 0 for value in found):
        raise ConfigError("--tau: a temperature is positive; give inf for hard 0/1 gates")
    if any(1e38 < value < math.inf for value in found):
        raise ConfigError("--tau: more than 1e38 is more than numbers can hold; give inf for hard 0/1 gates")
    return found


def sentence_lengths(ids: NDArray[np.int32], end: int) -> list[int]:
    """How many words each sentence of a text has, `end` not counted; one of more than `LONGEST` is cut."""
    words = np.diff(np.concatenate([[-1], np.flatnonzero(ids == end), [len(ids)]])) - 1
    return [min(LONGEST, n - cut) for n in words.tolist() for cut in range(0, n, LONGEST)]


def structure(sentences: Iterable[NDArray[np.float64]], config: ModelConfig) -> Structure:
    """Measure sentences, of which one has two words, by the distance before each word, with the gates of a model."""
    depths: list[int] = []
    words = reached = pairs = overlaps = 0
    for distances in sentences:
        if len(distances) < 2:
            continue
        starts = range_starts(distances, config)
        depths.append(levels(starts))
        words += len(starts) - 1
        reached += sum(t - starts[t] for t in range(1, len(starts)))
        pairs += (len(starts) - 1) * (len(starts) - 2) // 2
        overlaps += overlapping_pairs(starts)
    return Structure(float(np.mean(depths)), reached / words, overlaps / max(1, pairs))


def range_starts(distances: NDArray[np.float64], config: ModelConfig) -> list[int]:
    """l_t for each word of a sentence; 0 for the first, whose range is empty."""
    values = torch.from_numpy(np.asarray(distances, dtype=np.float64))
    earlier = torch.ones(len(values), len(values), dtype=torch.bool).tril(-1)  # (t, j): j < t
    alpha = gate_factors(values[:, None] - values, config).masked_fill(~earlier, 1.0)  # (t, j)
    gates: Tensor = stick(alpha)[:, 1:]  # (t, i): the product over j > i
    closed = (gates < 0.5) & earlier[:, :-1]
    return [int(count) for count in closed.sum(1)]


def levels(starts: Sequence[int]) -> int:
    """Constituents around the deepest word."""
    begins, depth = set(starts[1:]), {0: 1}
    for t, start in enumerate(starts[1:], start=1):
        depth[t] = depth[start] + (t in begins)
    return max(depth.values())


def overlapping_pairs(starts: Sequence[int]) -> int:
    """How many pairs of ranges overlap without one holding the other."""
    return sum(_crossings(starts, t) for t in range(2, len(starts)))


def _crossings(starts: Sequence[int], t: int) -> int:
    return sum(starts[s] < starts[t] for s in range(starts[t] + 1, t))
