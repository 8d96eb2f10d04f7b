"""What a student learns from: the words of raw text, and how high the crowd's tree splits before each of them.

    target_t = height of the smallest constituent that holds x_{t−1} and x_t      (`prpn.trees.reach.distances_of`)

The builder `unbiased` makes these heights the very same tree again, so a student that gets their order right has it.
The crowd reads punctuation, and what stands between two marks is outvoted by nobody. The student reads every second
sentence without punctuation and symbols, and learns what is left of its tree: treebanks are scored without most of
these, much is written so, and what marks say of a sentence can be seen in others by their words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from prpn.config import Builder
from prpn.errors import InputError
from prpn.parsing.parser import Parser
from prpn.text.files import place_of, read_lines
from prpn.trees.average import average
from prpn.trees.punctuation import between_marks, spoken_part
from prpn.trees.reach import distances_of
from prpn.trees.tree import Tree

LINES_AT_ONCE = 1_000
SHORTEST, LONGEST = 3, 100
"""Words of a sentence to learn from: two have only one tree, and votes of very long ones cost their square."""


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
    """Let the parsers vote on every line of some texts; words are numbered by the first parser's vocabulary."""
    first = parsers[0]
    ids: list[int] = []
    heights: list[float] = []
    ends: list[int] = []
    sentences = _sentences(_crowd_trees(paths, parsers, builder, tokenized, progress))
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
    builder: Builder | None,
    tokenized: bool,
    progress: Callable[[int], object],
) -> Iterator[Tree]:
    lines = (line for path in paths for _, line in read_lines(path))
    while some := list(islice(lines, LINES_AT_ONCE)):
        sentences = [parsers[0].words(line, tokenized) for line in some if isinstance(line, str)]
        sentences = [words for words in sentences if SHORTEST <= len(words) <= LONGEST]
        parsed = [parser.parse_words(sentences, builder) for parser in parsers]
        for votes in zip(*parsed, strict=True):
            trees = [vote.tree for vote in votes]
            marks = between_marks(trees[0].words)
            more_than_all = len(trees) * len(marks.words) + 1.0
            yield average([*trees, marks], [1.0] * len(trees) + [more_than_all])
        progress(len(some))
