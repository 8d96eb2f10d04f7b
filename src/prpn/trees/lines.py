"""Many trees at once: flat arrays, and what is written or made of them.

    words    the old man | we saw      ends        3  5      where each sentence ends among the words
    starts   0  1 | 0                  span_ends   2  3      where its constituents end among these
    stops    3  3 | 2                  counted from the first word of its sentence, in pre-order

Constituents are those over two words and more; a sentence of n words has n − 1, or none. `tree` and `brackets` say what
each way of writing looks like; a sentence without words is an empty line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, repeat

import numpy as np
from numpy.typing import NDArray

from prpn.trees.brackets import Constituent, escaped
from prpn.trees.tree import Tree

_constituent = partial(tuple.__new__, Constituent)  # without a look at each field: they are many


@dataclass(frozen=True)
class Trees:
    """Some sentences and their constituents."""

    words: Sequence[str]
    ends: NDArray[np.int64]
    starts: NDArray[np.int32]
    stops: NDArray[np.int32]
    span_ends: NDArray[np.int64]

    def __iter__(self) -> Iterator[Tree]:
        """Each tree as an object."""
        words, starts, stops = self.words, self.starts.tolist(), self.stops.tolist()
        begin = first = 0
        for end, last in zip(self.ends.tolist(), self.span_ends.tolist(), strict=True):
            if end - begin == 1:
                yield Tree.of_sound_parts(tuple(words[begin:end]), (Constituent(0, 1),))
            else:
                spans = map(_constituent, zip(starts[first:last], stops[first:last], repeat(None)))
                yield Tree.of_sound_parts(tuple(words[begin:end]), tuple(spans))
            begin, first = end, last

    def brackets(self) -> list[str]:
        """Each tree as `(the (old man))`."""
        return self._bracketed("(", escaped)

    def labelled(self) -> list[str]:
        """Each tree as `(X (W the) (X (W old) (W man)))`, for readers that take what follows a bracket for a label."""
        return self._bracketed("(X ", lambda word: f"(W {escaped(word)})")

    def _bracketed(self, bracket: str, written: Callable[[str], str]) -> list[str]:
        count, begins = len(self.words), np.concatenate([[0], self.ends[:-1]]).astype(np.int64)
        base = np.repeat(begins, np.diff(self.span_ends, prepend=0))  # of the sentence of each constituent
        opening = np.bincount(base + self.starts, minlength=count)
        closing = np.bincount(base + self.stops - 1, minlength=count)
        alone = begins[self.ends - begins == 1]
        opening[alone] = closing[alone] = 1
        is_last = np.zeros(count, dtype=np.int64)
        is_last[self.ends[self.ends > begins] - 1] = 1
        pieces = [""] * (3 * count)
        pieces[::3] = _looked_up(opening, {n: bracket * n for n in np.unique(opening).tolist()})
        pieces[1::3] = map({word: written(word) for word in set(self.words)}.__getitem__, self.words)
        ending = 2 * closing + is_last
        pieces[2::3] = _looked_up(ending, {n: ")" * (n // 2) + " " * (1 - n % 2) for n in np.unique(ending).tolist()})
        return ["".join(pieces[begin:end]) for begin, end in pairwise([0, *(3 * self.ends).tolist()])]

    def spans(self) -> Iterator[list[tuple[int, int]]]:
        """The constituents of each tree."""
        found = list(zip(self.starts.tolist(), self.stops.tolist(), strict=True))
        return (found[begin:end] for begin, end in pairwise([0, *self.span_ends.tolist()]))

    def spans_as_text(self) -> list[str]:
        """Each tree as `0-3 1-3`."""
        return [" ".join(f"{start}-{end}" for start, end in spans) for spans in self.spans()]

    def json(self, distances: NDArray[np.float64], offsets: Sequence[tuple[int, int]]) -> list[str]:
        """Each tree as an object with words, tree, spans, distances, and where each word stands in its line."""
        rounded = [round(distance, 6) for distance in distances.tolist()]
        places = pairwise([0, *self.ends.tolist()])
        return [
            as_json(self.words[begin:end], tree, spans, rounded[begin:end], offsets[begin:end])
            for (begin, end), tree, spans in zip(places, self.brackets(), self.spans(), strict=True)
        ]


def as_json(
    words: Sequence[str],
    tree: str,
    spans: Sequence[tuple[int, int]],
    distances: Sequence[float],
    offsets: Sequence[tuple[int, int]],
    **more: str,
) -> str:
    """One tree as an object."""
    values = {"words": words, "tree": tree, "spans": spans, "distances": distances, "offsets": offsets, **more}
    return json.dumps(values, ensure_ascii=False)


def _looked_up(keys: NDArray[np.int64], texts: dict[int, str]) -> Iterator[str]:
    return map(texts.__getitem__, keys.tolist())
