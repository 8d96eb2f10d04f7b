"""Many trees as lines of text at once, from flat arrays and without an object for each tree.

Words and constituents are counted from the first word of the first sentence; `ends` says where each sentence ends:

    words   the old man | we saw        ends   3  5        starts   0  1  3        stops   3  3  5

`tree` and `brackets` say what each way of writing looks like; a sentence without words is an empty line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from prpn.config import Builder
from prpn.trees.brackets import escaped
from prpn.trees.from_distances import in_preorder, spans_of_many


@dataclass(frozen=True)
class Trees:
    """Some sentences and the constituents over two or more of their words."""

    words: Sequence[str]
    ends: NDArray[np.int64]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]

    @staticmethod
    def build(words: Sequence[str], ends: NDArray[np.int64], scores: NDArray[np.floating], builder: Builder) -> Trees:
        """What `from_distances.build` makes of each sentence."""
        return Trees(words, ends, *spans_of_many(scores, ends, builder))

    def brackets(self) -> list[str]:
        """Each tree as `(the (old man))`."""
        count, begins = len(self.words), np.concatenate([[0], self.ends[:-1]])
        opening, closing = np.bincount(self.starts, minlength=count), np.bincount(self.stops - 1, minlength=count)
        alone = begins[self.ends - begins == 1]
        opening[alone] = closing[alone] = 1
        is_last = np.zeros(count, dtype=np.int64)
        is_last[self.ends[self.ends > begins] - 1] = 1
        pieces = [""] * (3 * count)
        pieces[::3] = _looked_up(opening, {n: "(" * n for n in np.unique(opening).tolist()})
        pieces[1::3] = map({word: escaped(word) for word in set(self.words)}.__getitem__, self.words)
        ending = 2 * closing + is_last
        pieces[2::3] = _looked_up(ending, {n: ")" * (n // 2) + " " * (1 - n % 2) for n in np.unique(ending).tolist()})
        return ["".join(pieces[begin:end]) for begin, end in pairwise([0, *(3 * self.ends).tolist()])]

    def spans(self) -> Iterator[list[tuple[int, int]]]:
        """The constituents of each tree in pre-order, counted from its own first word."""
        order = in_preorder(self.starts, self.stops)
        starts, stops = self.starts[order], self.stops[order]
        sentence = np.searchsorted(self.ends, starts, side="right")
        begins = np.concatenate([[0], self.ends])[sentence]
        found = list(zip((starts - begins).tolist(), (stops - begins).tolist(), strict=True))
        sizes = np.cumsum(np.bincount(sentence, minlength=len(self.ends))).tolist()
        return (found[begin:end] for begin, end in pairwise([0, *sizes]))

    def spans_as_text(self) -> list[str]:
        """Each tree as `0-3 1-3`."""
        return [" ".join(f"{start}-{end}" for start, end in spans) for spans in self.spans()]

    def json(self, distances: NDArray[np.float64]) -> list[str]:
        """Each tree as an object with words, tree, spans and distances."""
        rounded = [round(distance, 6) for distance in distances.tolist()]
        places = pairwise([0, *self.ends.tolist()])
        return [
            as_json(self.words[begin:end], tree, spans, rounded[begin:end])
            for (begin, end), tree, spans in zip(places, self.brackets(), self.spans(), strict=True)
        ]


def as_json(
    words: Sequence[str], tree: str, spans: Sequence[tuple[int, int]], distances: Sequence[float], **more: str
) -> str:
    """One tree as an object."""
    return json.dumps(
        {"words": words, "tree": tree, "spans": spans, "distances": distances, **more}, ensure_ascii=False
    )


def _looked_up(keys: NDArray[np.int64], texts: dict[int, str]) -> Iterator[str]:
    return map(texts.__getitem__, keys.tolist())
