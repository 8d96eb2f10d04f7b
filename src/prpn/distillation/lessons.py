"""What a student learns from: the words of raw text, and how high the crowd's tree splits before each of them.

    d_t      = mean over the parsers of their distances, each in units of its standard deviation
    p_t      = the probability that a mark stands before x_t, if marks are taken out of the sentence
    g_t      = the score that a builder gives to the gap before x_t, by d, + β p_t
    tree     = split at the largest g first, but beside marks before all others
    target_t = height of the smallest constituent that holds x_{t−1} and x_t      (`prpn.trees.reach.distances_of`)

Distances tell where constituents open. Marks tell where the larger ones end, and not only those that were written:
where a mark could stand as well, a sentence can be split. So another network of the student's kind first learns from
the text where marks stand (`mark_lessons`), and β is what it is worth to split where one certainly would. It then reads
the same sentences again, so it expects marks a little less where none were written than it would in others.

The builder `unbiased` makes the heights the very same tree again, so a student that gets their order right has it. The
student reads every second sentence without punctuation and symbols, and learns what is left of its tree: treebanks are
scored without most of these, much is written so, and what marks say of a sentence can be seen in others by their words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from prpn.config import Builder
from prpn.errors import InputError
from prpn.parsing.folded import Folded
from prpn.parsing.parser import Parser
from prpn.text.files import place_of, read_lines
from prpn.trees.from_distances import gap_scores
from prpn.trees.punctuation import is_mark, split_at_marks, spoken_part
from prpn.trees.reach import distances_of
from prpn.trees.tree import Tree

SENTENCES_AT_ONCE = 1_000
SHORTEST, LONGEST = 3, 100
"""Words of a sentence to learn from: two have only one tree, and what very long ones are taught costs their square."""
WORTH_OF_MARKS = 4.0
"""β, in standard deviations of distances: chosen on the development half of MASC (docs/log.md)."""


@dataclass(frozen=True)
class Lessons:
    """Sentences one after the other."""

    ids: NDArray[np.int32]  # (n,) words
    targets: NDArray[np.float32]  # (n,) what is to be learned of each word
    ends: NDArray[np.int64]  # (S,) where each sentence ends

    @staticmethod
    def of(
        parser: Parser, taught: Iterable[tuple[Sequence[str], NDArray[np.floating]]], paths: Sequence[str]
    ) -> Lessons:
        """Words of texts, numbered by the parser's vocabulary, and a target for each."""
        ids: list[int] = []
        targets: list[float] = []
        ends: list[int] = []
        for words, each in taught:
            ids += parser.vocabulary.encode(map(parser.tokenizer.normalize, words))
            targets += each.tolist()
            ends.append(len(ids))
        if len(ends) < 2:
            remedy = f"give text with sentences of {SHORTEST} to {LONGEST} words, one a line"
            raise InputError(", ".join(map(place_of, paths)), "too few sentences to learn from", remedy)
        return Lessons(np.array(ids, dtype=np.int32), np.array(targets, np.float32), np.array(ends, dtype=np.int64))

    def split(self, share: float) -> tuple[Lessons, Lessons]:
        """All but the last `share` of the sentences, at least one, and these."""
        kept = len(self.ends) - max(1, round(share * len(self.ends)))
        cut = int(self.ends[kept - 1]) if kept else 0
        return (
            Lessons(self.ids[:cut], self.targets[:cut], self.ends[:kept]),
            Lessons(self.ids[cut:], self.targets[cut:], self.ends[kept:] - cut),
        )


def mark_lessons(
    paths: Sequence[str],
    parser: Parser,
    *,
    tokenized: bool = False,
    limit: int = 0,
    progress: Callable[[int], object] = lambda _: None,
) -> Lessons:
    """The sentences of some texts without their marks; taught is before which words one stood."""

    def without_marks(words: Sequence[str]) -> tuple[list[str], NDArray[np.floating]]:
        marks = np.array([is_mark(word) for word in words])
        after_mark = np.concatenate([[False], marks[:-1]])
        return [word for word, mark in zip(words, marks, strict=True) if not mark], 1.0 * after_mark[~marks]

    sentences = map(without_marks, _sentences(paths, parser, tokenized, progress))
    return Lessons.of(parser, islice((each for each in sentences if len(each[0]) >= SHORTEST), limit or None), paths)


def tree_lessons(
    paths: Sequence[str],
    parsers: Sequence[Parser],
    marks: Folded,
    builder: Builder | None = None,
    *,
    tokenized: bool = False,
    limit: int = 0,
    progress: Callable[[int], object] = lambda _: None,
) -> Lessons:
    """The sentences of some texts, every second one without punctuation; taught are the heights of the crowd's trees.

    `marks` gives the log odds of marks.
    """
    sentences = _sentences(paths, parsers[0], tokenized, progress)
    trees = _crowd_trees(sentences, parsers, builder or parsers[0].builder, marks)
    return Lessons.of(parsers[0], islice(_heights(trees), limit or None), paths)


def _sentences(
    paths: Sequence[str], parser: Parser, tokenized: bool, progress: Callable[[int], object]
) -> Iterator[list[str]]:
    for path in paths:
        for _, line in read_lines(path):
            progress(1)
            words = parser.words(line, tokenized) if isinstance(line, str) else []
            if SHORTEST <= len(words) <= LONGEST:
                yield words


def _heights(trees: Iterable[Tree]) -> Iterator[tuple[Sequence[str], NDArray[np.float64]]]:
    for number, tree in enumerate(trees):
        words, heights = list(tree.words), np.array(distances_of(tree))
        if number % 2:
            words, heights = spoken_part(words, heights)
        if len(words) >= SHORTEST:
            yield words, heights


def _crowd_trees(
    sentences: Iterator[list[str]], parsers: Sequence[Parser], builder: Builder, marks: Folded
) -> Iterator[Tree]:
    while some := list(islice(sentences, SENTENCES_AT_ONCE)):
        found = zip(*(parser.scores(some) for parser in parsers), strict=True)
        for words, scores, expected in zip(some, found, _expected_marks(some, parsers[0], marks), strict=True):
            units = [own / parser.scale for parser, own in zip(parsers, scores, strict=True)]
            together: NDArray[np.float64] = np.mean(units, axis=0)
            yield split_at_marks(words, gap_scores(together, builder) + WORTH_OF_MARKS * expected)


def _expected_marks(sentences: Sequence[Sequence[str]], parser: Parser, marks: Folded) -> Iterator[NDArray[np.float64]]:
    """The probability of a mark before each word, as the words without marks tell it; 0 before what is a mark."""
    kept = [np.flatnonzero([not is_mark(word) for word in words]) for words in sentences]
    ends = np.cumsum(list(map(len, kept)))
    words = (sentence[place] for sentence, places in zip(sentences, kept, strict=True) for place in places.tolist())
    ids = np.array(parser.vocabulary.encode(map(parser.tokenizer.normalize, words)), dtype=np.int32)
    odds = marks.scores(ids, ends).astype(np.float64)
    probabilities = np.split(1 / (1 + np.exp(-odds)), ends[:-1])
    for sentence, places, each in zip(sentences, kept, probabilities, strict=True):
        expected = np.zeros(len(sentence))
        expected[places[1:]] = each[1:]  # before the first word a mark splits nothing off, and none was taught
        yield expected
