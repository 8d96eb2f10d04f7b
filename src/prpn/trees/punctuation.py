"""What punctuation tells: which words are said, and which belong together because marks stand around them.

    the old man , who sat on the bench , left .
    └───┬─────┘   └────────┬─────────┘
    two words or more between two marks are taken for a constituent

Marks are stops, commas, dashes, brackets and quotation marks. Other punctuation and symbols, such as `%` and `$`, are
no words that treebanks score, but set nothing off; nor does a single quotation mark, which may be a genitive.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from prpn.text.penn import BRACKETS
from prpn.trees.brackets import Constituent
from prpn.trees.cleaning import is_word
from prpn.trees.from_distances import split_at
from prpn.trees.tree import Tree

STOPS = frozenset(".,;:!?…¿¡،؛؟۔።।॥、。，；：！？｡､·")
QUOTES = frozenset(['"', "``", "''"])
SINGLE_QUOTES = frozenset("'‘’`")
_AROUND = frozenset(["Ps", "Pe", "Pi", "Pf", "Pd"])
"""Unicode's opening and closing brackets and quotation marks, and dashes."""


def is_mark(word: str) -> bool:
    """Whether it sets off what stands before it from what follows."""
    if word in QUOTES or word in BRACKETS.values():
        return True
    return word not in SINGLE_QUOTES and all(
        letter in STOPS or unicodedata.category(letter) in _AROUND for letter in word
    )


def between_marks(words: Sequence[str]) -> Tree:
    """The flat tree whose constituents are the words between two marks, two words or more."""
    ends = [*(place for place, word in enumerate(words) if is_mark(word)), len(words)]
    starts = [0, *(end + 1 for end in ends[:-1])]
    found = [Constituent(start, end) for start, end in zip(starts, ends, strict=True) if end - start > 1]
    whole = Constituent(0, len(words))
    return Tree(tuple(words), (whole, *(each for each in found if each != whole)))


def split_at_marks(words: Sequence[str], scores: NDArray[np.floating]) -> Tree:
    """The tree that is split beside marks first, and in each of its parts at the gaps with the largest scores first.

    So whatever the scores are, the words between two marks are a constituent.
    """
    marks = np.array([is_mark(word) for word in words])
    beside = marks | np.roll(marks, 1)  # the gap before a word: the first has none that counts
    return split_at(words, scores + beside * (np.ptp(scores) + 1))


def spoken_part(words: Sequence[str], heights: NDArray[np.float64]) -> tuple[list[str], NDArray[np.float64]]:
    """The words that are said, and the height of the smallest constituent that holds each and the one before it.

    What lies between two of them falls away: the smallest constituent with both is the highest with two neighbours.
    """
    kept = np.flatnonzero([is_word(word) for word in words])
    if not len(kept):
        return [], heights[:0]
    after_last = np.concatenate([[0], kept[:-1] + 1])
    return [words[place] for place in kept.tolist()], np.maximum.reduceat(heights[: kept[-1] + 1], after_last)
