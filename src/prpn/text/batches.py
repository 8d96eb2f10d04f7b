"""Batches for training and evaluation: cut from one stream, or made of whole sentences. B columns, T rows of time.

Stream. The corpus is a circle of n tokens. Column b begins at (offset + ⌊b·n / B⌋) mod n and is ⌈n / B⌉ long; batch k
holds its rows k·bptt … (k + 1)·bptt, or, with jitter, those between cuts near by. The target at a position is the token
there and the input the token before it, so every token is a target, the first of the corpus after `start_token`. Where
B does not divide n some columns end with the first token of the next one; `once` masks these repeats.

Sentences. Input `<s> w₁ … wₙ`, target `w₁ … wₙ </s>`. Sentences are shuffled, sorted by length within pools of
`_POOL` batches, and cut into batches, which are shuffled again: little padding, and chance still mixes the corpus.

Both are sequences, so a run can go on at any batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

_POOL = 100


@dataclass(frozen=True, eq=False)
class Batch:
    """What the network reads at once."""

    inputs: NDArray[np.int64]  # (T, B)
    targets: NDArray[np.int64]  # (T, B)
    mask: NDArray[np.bool_] | None  # (T, B), the targets that count; none: all of them
    fresh: bool
    """Whether the state starts at zero here rather than going on from the batch before."""


class _Batches(Sequence[Batch]):
    """Makes each batch when it is asked for."""

    @abstractmethod
    def _batch(self, index: int) -> Batch: ...

    @overload
    def __getitem__(self, index: int) -> Batch: ...
    @overload
    def __getitem__(self, index: slice) -> list[Batch]: ...
    def __getitem__(self, index: int | slice) -> Batch | list[Batch]:
        if isinstance(index, slice):
            return [self._batch(each) for each in range(len(self))[index]]
        return self._batch(range(len(self))[index])


class StreamBatches(_Batches):
    """The corpus as `batch_size` parallel streams; fewer when it has fewer tokens."""

    def __init__(
        self,
        ids: NDArray[Any],
        batch_size: int,
        bptt: int,
        *,
        start_token: int,
        offset: int = 0,
        once: bool = False,
        jitter: float = 0.0,
        random: np.random.Generator | None = None,
    ) -> None:
        self._ids, self._start_token, self._once = ids, start_token, once
        columns = max(1, min(batch_size, len(ids)))
        boundaries = np.arange(columns + 1, dtype=np.int64) * len(ids) // columns
        self._begins = boundaries[:-1] + offset  # (B,)
        self._own_rows = np.diff(boundaries)  # (B,)
        rows = -(-len(ids) // columns)
        inner = np.arange(bptt, rows, bptt)
        if random is not None and jitter:
            furthest = int(jitter * bptt / 2)  # two neighbours can meet half-way each
            inner = np.minimum(inner + random.integers(-furthest, furthest + 1, len(inner)), rows - 1)
        cuts = [0, *inner.tolist(), rows]  # batch k holds the rows from cut k to the next
        self._cuts = cuts if rows else [0]

    def __len__(self) -> int:
        return len(self._cuts) - 1

    def _batch(self, index: int) -> Batch:
        rows = np.arange(self._cuts[index], self._cuts[index + 1])[:, None]  # (T, 1)
        positions = (self._begins + rows) % len(self._ids)  # (T, B)
        inputs = self._ids[positions - 1].astype(np.int64)  # (T, B); position −1 is the last token: the circle closes
        inputs[positions == 0] = self._start_token
        mask = rows < self._own_rows if self._once else None  # (T, B)
        return Batch(inputs, self._ids[positions].astype(np.int64), _unless_all(mask), fresh=index == 0)


class SentenceBatches(_Batches):
    """Whole sentences of about the same length, filled up with `end_token` on the right."""

    def __init__(
        self,
        ids: NDArray[Any],
        batch_size: int,
        *,
        start_token: int,
        end_token: int,
        seed: int = 0,
        epoch: int = 0,
        shuffle: bool = True,
    ) -> None:
        self._ids, self._start_token, self._end_token = ids, start_token, end_token
        ends = np.flatnonzero(np.asarray(ids) == end_token) + 1
        if len(ids) and (len(ends) == 0 or ends[-1] != len(ids)):
            ends = np.append(ends, len(ids))  # the text stops within a sentence
        begins = np.concatenate([[0], ends[:-1]]).astype(np.int64) if len(ends) else ends
        self._begins, self._lengths = begins, ends - begins
        random = np.random.default_rng([seed, epoch]) if shuffle else None
        self._batches = alike_in_length(self._lengths, batch_size, random)

    def __len__(self) -> int:
        return len(self._batches)

    def _batch(self, index: int) -> Batch:
        chosen = self._batches[index]
        begins, lengths = self._begins[chosen], self._lengths[chosen]  # (B,) each
        return sentence_batch(self._ids, begins, lengths, self._start_token, self._end_token)


def alike_in_length(
    lengths: NDArray[np.int64], batch_size: int, random: np.random.Generator | None
) -> list[NDArray[np.int64]]:
    """The numbers of sentences with these lengths in batches of about equally long ones, shuffled if by `random`."""
    order = np.arange(len(lengths)) if random is None else random.permutation(len(lengths))
    pools = np.arange(len(lengths)) // (_POOL * batch_size)
    order = order[np.lexsort((lengths[order], pools))]
    batches = [order[first : first + batch_size] for first in range(0, len(order), batch_size)]
    return batches if random is None else [batches[place] for place in random.permutation(len(batches))]


def sentence_batch(
    ids: NDArray[Any], begins: NDArray[Any], lengths: NDArray[Any], start_token: int, end_token: int
) -> Batch:
    """Sentences that begin at these places of a text, side by side (B of them)."""
    rows = np.arange(lengths.max())[:, None]  # (T, 1)
    mask = rows < lengths  # (T, B)
    positions = np.where(mask, begins + rows, 0)  # (T, B)
    targets = np.where(mask, ids[positions].astype(np.int64), end_token)  # (T, B)
    inputs = np.where(mask, np.roll(targets, 1, axis=0), end_token)  # (T, B)
    inputs[0] = start_token
    return Batch(inputs, targets, _unless_all(mask), fresh=True)


def _unless_all(mask: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    return None if mask is None or mask.all() else mask
