"""Where a character model puts boundaries, measured against the spaces of the text, which it was not told about.

    d_t is the distance before x_t; a position ends a word if x_t is a space or line end and x_{t−1} is not,
    is inside a word if neither is, and begins one if only x_{t−1} is

    end    = P(d at the end of a word > d inside a word), ties counted half: the area under the curve, 1/2 by chance
    begin  = P(d at the beginning of a word > d inside a word)
    letters_stop      = share of letters that reach back no further than the last space
    letters_at_space  = share of letters that reach back to the last space and no further; the others that stop do so
                        within their own word
    spaces_go_on      = share of spaces that reach back beyond the space before them

With hard gates (τ = ∞) x_t reaches back to the last i < t with d_i > d_t, and never further than the memory. The same
shares with the distances in random order say what boundaries in no particular place would give.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prpn.errors import InputError
from prpn.trees.reach import reach_starts_from_distances

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
SHUFFLE_SEED = 1


@dataclass(frozen=True)
class Reaches:
    """How far back letters and spaces reach."""

    letters_stop: float
    letters_at_space: float
    spaces_go_on: float


@dataclass(frozen=True)
class Boundaries:
    """What the distances of a text say about its words."""

    end: float
    begin: float
    reaches: Reaches
    shuffled: Reaches
    words: int
    inside: int

    def to_json(self) -> dict[str, Any]:
        """The figures by the names that scripts read."""
        return asdict(self)


def boundaries(is_space: Flags, distances: Floats, memory_slots: int) -> Boundaries:
    """Measure the distances (T,) of a text, of which `is_space` (T,) says what is a space or line end."""
    before = np.concatenate([[True], is_space[:-1]])
    ends, begins, inside = is_space & ~before, ~is_space & before, ~is_space & ~before
    if ends.sum() < 2 or not inside.any():
        raise InputError("the text", "no two words with spaces after them and two letters", "give running text")
    shuffled = np.random.default_rng(SHUFFLE_SEED).permutation(distances)
    return Boundaries(
        end=area_under_curve(distances[ends], distances[inside]),
        begin=area_under_curve(distances[begins], distances[inside]),
        reaches=_reaches(is_space, distances, memory_slots),
        shuffled=_reaches(is_space, shuffled, memory_slots),
        words=int(ends.sum()),
        inside=int(inside.sum()),
    )


def area_under_curve(positive: Floats, negative: Floats) -> float:
    """How often a positive number is larger than a negative one, ties counted half."""
    ranked = np.sort(negative)
    smaller = np.searchsorted(ranked, positive, "left") + np.searchsorted(ranked, positive, "right")
    return float(smaller.mean() / (2 * len(negative)))


def _reaches(is_space: Flags, distances: Floats, memory_slots: int) -> Reaches:
    positions = np.arange(len(distances))
    starts = np.maximum(reach_starts_from_distances(distances), positions - memory_slots)
    spaces = np.where(is_space, positions, -1)
    last_space = np.concatenate([[-1], np.maximum.accumulate(spaces)[:-1]])  # before each position
    after_one = last_space >= 0
    letters, others = ~is_space & after_one, is_space & after_one
    shares = (starts >= last_space)[letters], (starts == last_space)[letters], (starts < last_space)[others]
    return Reaches(*(float(share.mean()) for share in shares))
