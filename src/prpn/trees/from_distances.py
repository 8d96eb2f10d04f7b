"""From syntactic distances to a tree: split at the largest distance, then split the parts the same way.

d_i is the distance of the gap before word x_i, for i = 0 … n − 1. With i the first maximum of d in the part at hand,

    paper (appendix A)    x  →  ( x_{<i}  ( x_i  x_{>i} ) )     i may be the first word: then  ( x_i  x_{>i} )
    unbiased              x  →  ( x_{<i}  x_{≥i} )              i is never the first word, d_0 is never used

where a part of one word gets no brackets and an empty part vanishes. `paper` makes the word after the split the left
sister of all that follows: this favours right branching and leaves some trees out of reach, ((a b) ((c d) e)) being the
smallest. `unbiased` reaches every binary tree: let d_i be the height of the smallest constituent with x_{i−1} and x_i.

A high distance belongs to a word rather than to the gap before it. Where phrases begin with function words, as in
English, it marks a word that opens one, and the split is before it; where they end with such words, as in Japanese, it
marks a word that closes one, and the split is after it. Nor does it say how far that constituent reaches: `on` in `sat
on the bench` opens a phrase, but what is before it need not be one. So the other two builders want more of a split, the
later (or the earlier) it comes, and read the distances in the manner of `paper` and of `unbiased` half and half.

All are one: split at the first gap with the largest score, where the gap before x_i scores, for i = 1 … n − 1,

    unbiased         g_i = d_i
    paper            g_i = max(d_{i−1}, d_i)
    right-leaning    g_i = (a_i + max(a_{i−1}, a_i)) / 2 − λ i      a_i = d_i, opened by x_i;          a_0 := a_1
    left-leaning     g_i = (a_i + max(a_i, a_{i+1})) / 2 + λ i      a_i = d_{i−1}, closed by x_{i−1};  a_n := a_{n−1}

with distances in units of their standard deviation and λ = ¾: a split one word later wants a distance higher by that.
The last is the mirror image of the third: it reads the words from the other side. The first word opens and the last one
closes the whole sentence whatever their distances are, so these take no part: a_1 := d_1 in the last line.

Claim: `paper` is that. Proof: let i be the first maximum of d in the part at hand. Of its gaps those on both sides of
x_i have the score d_i, and no gap before them has. So the first is split, x_{<i} from x_{≥i}, unless x_i is the first
word; then, in a part that begins with x_i, the gap after it. Gaps within x_{<i} and x_{>i} know nothing of d_i.

Nor is recursion needed. For gaps 1 … n − 1 let

    before(i) = the last gap j < i with g_j ≥ g_i, or 0        after(i) = the first gap k > i with g_k > g_i, or n

Claim: when i is chosen, the part at hand is x_{before(i)} … x_{after(i)−1}. Proof: before(i) and after(i) win against i
wherever they meet, so both were chosen earlier and cut i off from what lies behind them. Every gap between them loses
against i, so none was chosen earlier. Hence the constituents are [before(i), after(i)) for each gap i, and a stack of
falling scores finds before and after in O(n): each i is pushed once and popped at most once. Among constituents that
start at the same word, a larger i means a later end, for i is larger than all it looked back over: going through i from
right to left lists parents before children, which is pre-order.

For many sentences at once there is no stack but pointers that jump, all together: after(i) begins as i + 1, and while
g_after(i) ≤ g_i it becomes after(after(i)). All between i and after(i) lose against i, before a jump as well as after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from prpn.config import Builder
from prpn.errors import ConfigError, InputError
from prpn.trees.brackets import Constituent
from prpn.trees.tree import Tree

LEANING: tuple[Builder, ...] = ("right-leaning", "left-leaning")
"""Builders that want distances in units of their standard deviation; to the others only their order matters."""
LEAN = 0.75
"""λ: chosen on the development half of MASC (docs/log.md); the score is flat around it."""
Distances = Sequence[float] | NDArray[np.floating]


def build(words: Sequence[str], distances: Distances, builder: Builder = "paper") -> Tree:
    """Build the tree that distances give to words.

    Args:
        words: The words of one sentence.
        distances: One for the gap before each word; the first matters to the builder `paper` alone.
        builder: How they become a tree: `paper`, `unbiased`, `right-leaning` or `left-leaning`. The last two want
            distances in units of their standard deviation; to the others only their order matters.

    Raises:
        InputError: There are more or fewer distances than words, or one of them is not a number.
        ConfigError: No builder has this name.

    """
    values = np.array(as_numbers(words, distances))
    require_builder(builder)
    if builder in LEANING and not np.isfinite(values).all():
        raise InputError("distances", "not all are finite", f"{builder} adds them: build with paper or unbiased")
    return split_at(words, gap_scores(values, builder))


def require_builder(name: str) -> None:
    """Refuse what is no builder's name."""
    if name not in get_args(Builder):
        raise ConfigError(f"no builder is called '{name}': choose {', '.join(get_args(Builder))}")


def gap_scores(distances: NDArray[np.floating], builder: Builder) -> NDArray[np.floating]:
    """The score of the gap before each word of a sentence; that of the first counts for nothing."""
    return _gap_scores(distances, np.arange(len(distances)), len(distances), builder)


def split_at(words: Sequence[str], scores: NDArray[np.floating]) -> Tree:
    """The tree that is split at the gaps with the largest scores first."""
    before, after = outranking(scores[1:].tolist())
    starting: list[list[int]] = [[] for _ in words]  # where the constituents that start at each word end
    for i in reversed(range(len(before))):  # entry i is the gap before word i + 1
        starting[before[i] + 1].append(after[i] + 1)
    constituents = [Constituent(start, end) for start, ends in enumerate(starting) for end in ends]
    return Tree(tuple(words), tuple(constituents or [Constituent(0, 1)] * len(words)))


def has_ties(distances: Distances, builder: Builder) -> bool:
    """Tell whether two equal distances competed for a split, so that their order and not the model decided."""
    values = np.asarray(distances, dtype=float)
    if builder != "paper":  # whose gaps around one word are equal by definition
        values = gap_scores(values, builder)[1:]
    before, _ = outranking(values.tolist())
    return any(j >= 0 and values[j] == values[i] for i, j in enumerate(before))


def spans_of_many(
    distances: NDArray[np.floating], ends: NDArray[np.int64], builder: Builder
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Starts and ends of all constituents of two or more words, of sentences that follow each other and end at `ends`.

    They are what `build` gives each sentence, in pre-order and counted from its first word; and where each sentence
    ends among them.
    """
    sizes = np.diff(ends, prepend=0)
    begins, size = np.repeat(ends - sizes, sizes), np.repeat(sizes, sizes)  # of the sentence of each word
    places = np.arange(len(distances)) - begins
    gap = np.flatnonzero(places > 0)
    scores = _gap_scores(distances.astype(np.float64), places, size, builder)
    first, last = begins + 1, begins + size  # gaps of the sentence
    starts, stops = _jumping(scores, gap, -1, first, last), _jumping(scores, gap, 1, first, last)
    order, base = np.lexsort((-stops, starts)), begins[gap]
    return (
        (starts[order] - base).astype(np.int32),
        (stops[order] - base).astype(np.int32),
        np.cumsum(np.maximum(sizes - 1, 0)),
    )


def _gap_scores(
    distances: NDArray[np.floating], places: NDArray[np.int64], sizes: NDArray[np.int64] | int, builder: Builder
) -> NDArray[np.floating]:
    """The score of the gap before each word, at its place in a sentence of this size; place 0 has none that counts."""
    if builder == "unbiased":
        return distances
    previous = np.roll(distances, 1)
    if builder == "paper":
        return np.maximum(previous, distances)
    previous = np.where(places > 1, previous, distances)
    if builder == "right-leaning":
        own, neighbour, lean = distances, previous, -LEAN
    else:
        own, neighbour, lean = previous, np.where(places < sizes - 1, distances, previous), LEAN
    return (own + np.maximum(own, neighbour)) / 2 + lean * places


def _jumping(
    scores: NDArray[np.floating],
    gap: NDArray[np.int64],
    step: Literal[-1, 1],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
) -> NDArray[np.int64]:
    """For each gap the nearest on one side of it, between first and last, that outranks it; else the one beyond."""
    reached = np.arange(len(scores)) + step
    jumping = gap
    while len(jumping):
        other = reached[jumping]
        inside = (other >= first[jumping]) & (other < last[jumping])
        jumping, other = jumping[inside], other[inside]
        lower = scores[other] < scores[jumping] if step < 0 else scores[other] <= scores[jumping]
        jumping = jumping[lower]
        reached[jumping] = reached[other[lower]]
    return reached[gap]


def as_numbers(words: Sequence[str], distances: Distances) -> list[float]:
    """Check that there is one distance for each word, and give them as plain numbers."""
    values = np.asarray(distances, dtype=float)
    if values.shape != (len(words),):
        raise InputError("distances", f"shape {values.shape} for {len(words)} words", "give one for each word")
    if np.isnan(values).any():
        word = words[int(np.isnan(values).argmax())]
        raise InputError("distances", f"the one before '{word}' is not a number", "check the model for overflow")
    plain: list[float] = values.tolist()
    return plain


def outranking(values: list[float]) -> tuple[list[int], list[int]]:
    """For each i the last index before it that is not lower, and the first after it that is higher."""
    before = [-1] * len(values)
    after = [len(values)] * len(values)
    waiting: list[int] = []  # no later value was higher so far; from left to right they fall or stay equal
    for i, value in enumerate(values):
        while waiting and values[waiting[-1]] < value:
            after[waiting.pop()] = i
        if waiting:
            before[i] = waiting[-1]
        waiting.append(i)
    return before, after
