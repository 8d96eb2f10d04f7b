"""The parsing network in evaluation mode, folded into one row of numbers for each word.

    h_t  =  ReLU(γ (Σ_k W_k e_{t−L+k} + b_c − μ) / √(σ² + ε) + β)  =  ReLU(Σ_k V_k e_{t−L+k} + v)
    d_t  =  act(w · h_t + b)

Batch norm is folded into the convolution: V_k and v. Words repeat, so V_k e for all k, the word's row, is worked out
when the word is first seen, and looked up ever after: a word costs L + 1 additions of C numbers and one product.
A sentence is read after L zero vectors and the token that precedes sentences, so neither its neighbours nor its block
change its distances. A distilled network (`prpn.distillation`) also looks ahead: k goes up to L + R, and zero vectors
follow the sentence.

    # T words, S sentences, L look-back, R look-ahead, E embedding, C channels
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from prpn import kernels
from prpn.kernels import parsing as native
from prpn.locks import lock_across_forks

Array = NDArray[np.float32]

BATCH_NORM_EPSILON = 1e-5
ROW_BYTES = 1 << 29
"""What all rows together may take; beyond it they are made anew."""
VECTOR = 16
"""Channels that do nothing are added up to a multiple of this: rows fill vectors and lines of the cache."""
WORDS_AT_ONCE = 256
"""Words whose hidden units are in the cache together."""


def native_in_use() -> bool:
    """Whether the native core parses; it does so in fp32 only."""
    return kernels.in_use() in ("fp32", "bf16")


_MAKING = lock_across_forks()
"""Held while rows are looked up and made."""


class Rows:
    """V_k e of the words seen so far, in bounded memory, for any number of threads.

    A row that somebody may be reading is never written again: rows are only added to a table, and when it is full the
    next one begins. Who was given the old one keeps it.
    """

    SILENCE, START = 0, 1
    """Where the zero vector and the token that precedes sentences have their rows."""

    def __init__(self, embedding: Array, kernel: Array, start: int, limit: int = ROW_BYTES) -> None:
        size, self.windows, self.channels = kernel.shape
        self._start, self.embedding = start, np.ascontiguousarray(embedding, dtype=np.float32)
        self._kernel = np.ascontiguousarray(kernel.reshape(size, -1), dtype=np.float32)  # (E, (L + 1 + R) C)
        columns = self._kernel.shape[1]
        # Look-back, the word itself, look-ahead, and the two rows that always stay.
        self._capacity = min(len(embedding) + 1, max(limit // (4 * columns), self.windows + 2))
        with _MAKING:
            self._begin_table()

    def look_up(self, ids: NDArray[np.int32]) -> tuple[Array, NDArray[np.int32]] | None:
        """A table (…, columns) and which row of it each word has; None if there are more different words than rows."""
        with _MAKING:
            slots = self._slots[ids]
            if slots.min(initial=0) >= 0:
                return self._table, slots
            new = np.unique(ids[slots < 0])
            if self._count + len(new) > self._capacity:
                self._begin_table()
                new = np.setdiff1d(ids, self._start)
                if self._count + len(new) > self._capacity:
                    return None
            self._make(new)
            return self._table, self._slots[ids]

    def _begin_table(self) -> None:
        columns = self._kernel.shape[1]
        spare = np.empty(self._capacity * columns + VECTOR, dtype=np.float32)
        aligned = -(spare.ctypes.data // 4) % VECTOR
        self._table = spare[aligned : aligned + self._capacity * columns].reshape(self._capacity, columns)
        self._table[self.SILENCE] = 0
        self._slots = np.full(len(self.embedding), -1, dtype=np.int32)
        self._count = self.START
        self._make(np.array([self._start], dtype=np.int32))

    def _make(self, ids: NDArray[np.int32]) -> None:
        new = self._table[self._count : self._count + len(ids)]
        if native_in_use():
            native.make_rows(self.embedding, self._kernel, ids, new)
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                np.matmul(self.embedding[ids], self._kernel, out=new)
        self._slots[ids] = range(self._count, self._count + len(ids))
        self._count += len(ids)


class Folded:
    """Distances before their activation, for words given as ids."""

    def __init__(self, weights: Mapping[str, Array], start: int, lookahead: int = 0) -> None:
        self.lookahead = lookahead
        kernel = weights["parsing.convolution.weight"]  # (C, E, L + 1 + R)
        # The first head gives d_t; in the released form it reads the first half of the channels only.
        head = weights["parsing.heads.weight"][0, :, 0]
        used = slice(0, len(head))
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused where it is used
            self._fold(weights, kernel, head, used, start)

    def _fold(self, weights: Mapping[str, Array], kernel: Array, head: Array, used: slice, start: int) -> None:
        spread = np.sqrt(weights["parsing.norm.running_var"][used] + BATCH_NORM_EPSILON)
        gain = weights["parsing.norm.weight"][used] / spread
        shift = weights["parsing.convolution.bias"][used] - weights["parsing.norm.running_mean"][used]
        filled = [(0, -len(head) % VECTOR)]
        folded = np.pad(gain[:, None, None] * kernel[used], [*filled, (0, 0), (0, 0)])  # (C, E, L + 1 + R)
        self.rows = Rows(weights["embedding.weight"], folded.transpose(1, 2, 0), start)
        self.bias = np.pad(gain * shift + weights["parsing.norm.bias"][used], filled)  # (C,)
        self.head, self.head_bias = np.pad(head, filled), float(weights["parsing.heads.bias"][0])

    def scores(self, ids: NDArray[np.int32], ends: NDArray[np.int64], threads: int | None = None) -> Array:
        """Scores of all words of some sentences that stand one after the other and end at `ends`."""
        scores = np.empty(len(ids), dtype=np.float32)
        waiting = [(0, len(ids))]
        while waiting:
            begin, end = waiting.pop()
            first = max(0, begin - self.rows.windows + 1 + self.lookahead)
            found = self.rows.look_up(ids[first : end + self.lookahead])
            if found is None:
                middle = (begin + end) // 2
                waiting += [(middle, end), (begin, middle)]
            elif native_in_use():
                native.scores(self, *found, first, ends, scores[begin:end], begin, threads)
            else:
                with np.errstate(over="ignore", invalid="ignore"):
                    self._score(*found, first, ends, scores[begin:end], begin)
        return scores

    def _score(
        self,
        table: Array,
        slots: NDArray[np.int32],
        first: int,
        ends: NDArray[np.int64],
        scores: Array,
        begin: int,
    ) -> None:
        windows, channels = self.rows.windows, self.rows.channels
        pieces = table.reshape(-1, channels)  # row after row, k after k
        words = np.arange(begin, begin + len(scores))  # (T,)
        sentences = np.searchsorted(ends, words, side="right")
        starts, stops = np.concatenate([[0], ends])[sentences], np.asarray(ends)[sentences]
        looked_up = np.empty((windows, len(words)), dtype=np.int64)  # places among the pieces
        for k, places in enumerate(looked_up):
            seen = words - windows + 1 + self.lookahead + k
            inside, special = (seen >= starts) & (seen < stops), np.where(seen == starts - 1, Rows.START, Rows.SILENCE)
            places[:] = np.where(inside, slots[np.where(inside, seen - first, 0)], special) * windows + k
        hidden, piece = np.empty((2, WORDS_AT_ONCE, channels), dtype=np.float32)
        for part in range(0, len(words), WORDS_AT_ONCE):
            places = looked_up[:, part : part + WORDS_AT_ONCE]
            sums, summand = hidden[: places.shape[1]], piece[: places.shape[1]]  # (T, C)
            sums[:] = self.bias
            for k in range(windows):
                sums += np.take(pieces, places[k], axis=0, out=summand, mode="clip")
            np.matmul(np.maximum(sums, 0, out=sums), self.head, out=scores[part : part + WORDS_AT_ONCE])
        scores += np.float32(self.head_bias)
