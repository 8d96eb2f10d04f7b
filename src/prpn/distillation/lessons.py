"""What a student learns from: the words of raw text, and how high the crowd's tree splits before each of them.

    d_t      = mean over the parsers of their distances, each in units of its standard deviation
    tree     = what a builder makes of d, but split beside marks first       (`prpn.trees.punctuation.split_at_marks`)
    target_t = height of the smallest constituent that holds x_{t−1} and x_t      (`prpn.trees.reach.distances_of`)

The builder `unbiased` makes these heights the very same tree again, so a student that gets their order right has it.
The crowd reads punctuation, and what stands between two marks is a constituent whatever it thinks. The student reads
every second sentence without punctuation and symbols, and learns what is left of its tree: treebanks are scored without
most of these, much is written so, and what marks say of a sentence can be seen in others by their words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from prpn.config import Builder
from prpn.errors import InputError
from prpn.parsing.parser import Parser, Scores
from prpn.text.files import place_of, read_lines
from prpn.trees.from_distances import gap_scores
from prpn.trees.punctuation import split_at_marks, spoken_part
from prpn.trees.reach import distances_of
from prpn.trees.tree import Tree

LINES_AT_ONCE = 1_000
SHORTEST, LONGEST = 3, 100
"""Words of a sentence to learn from: two have only one tree, and very long ones are lists."""


@dataclass(frozen=True)
class Lessons:
    """Sentences one after the other."""

    ids: NDArray[np.int32]  # (n,) words
    heights: NDArray[np.float32]  # (n,) what the tree has before each word
    ends: NDArray[np.int64]  # (S,) where each sentence ends

    def split(self, share: float) -> tuple[Lessons, Lessons]:
        """All but the last `share` of the sentences, at least one, and these."""
        kept = len(self.ends) - max(1, round(share * len(self.ends)))
        cut = int(self.ends[kept - 1]) if kept else 0
        return (
            Lessons(self.ids[:cut], self.heights[:cut], self.ends[:kept]),
            Lessons(self.ids[cut:], self.heights[cut:], self.ends[kept:] - cut),
        )


def read_lessons(
    paths: Sequence[str],
    parsers: Sequence[Parser],
    builder: Builder | None = None,
    *,
    tokenized: bool = False,
    limit: int = 0,
    progress: Callable[[int], object] = lambda _: None,
) -> Lessons:
    """Let the parsers parse every line of some texts together; words are numbered by the first one's vocabulary."""
    first = parsers[0]
    ids: list[int] = []
    heights: list[float] = []
    ends: list[int] = []
    sentences = _sentences(_crowd_trees(paths, parsers, builder or first.builder, tokenized, progress))
    for words, found in islice(sentences, limit or None):
        ids += first.vocabulary.encode(map(first.tokenizer.normalize, words))
        heights += found.tolist()
        ends.append(len(ids))
    if len(ends) < 2:
        remedy = f"give text with sentences of {SHORTEST} to {LONGEST} words, one a line"
        raise InputError(", ".join(map(place_of, paths)), "too few sentences to learn from", remedy)
    return Lessons(np.array(ids, dtype=np.int32), np.array(heights, dtype=np.float32), np.array(ends, dtype=np.int64))


def _sentences(trees: Iterable[Tree]) -> Iterator[tuple[list[str], NDArray[np.float64]]]:
    """Words and heights of trees, every second one without punctuation."""
    for number, tree in enumerate(trees):
        words, heights = list(tree.words), np.array(distances_of(tree))
        if number % 2:
            words, heights = spoken_part(words, heights)
        if len(words) >= SHORTEST:
            yield words, heights


def _crowd_trees(
    paths: Sequence[str],
    parsers: Sequence[Parser],
    builder: Builder,
    tokenized: bool,
    progress: Callable[[int], object],
) -> Iterator[Tree]:
    lines = (line for path in paths for _, line in read_lines(path))
    while some := list(islice(lines, LINES_AT_ONCE)):
        sentences = [parsers[0].words(line, tokenized) for line in some if isinstance(line, str)]
        sentences = [words for words in sentences if SHORTEST <= len(words) <= LONGEST]
        found = [parser.scores(sentences) for parser in parsers]
        for words, *scores in zip(sentences, *found, strict=True):
            yield split_at_marks(words, gap_scores(_mean(parsers, scores, builder), builder))
        progress(len(some))


def _mean(parsers: Sequence[Parser], scores: Sequence[Scores], builder: Builder) -> Scores:
    """The distances of a sentence that the parsers have together, in units that the builder wants."""
    if len(parsers) == 1:
        return parsers[0].in_units(scores[0], builder)
    units = [parser.in_standard_units(own, "a crowd") for parser, own in zip(parsers, scores, strict=True)]
    return np.mean(units, axis=0)
