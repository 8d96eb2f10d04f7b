"""Trees as text: `(the (old man))`, and back.

Written flat, word by word, each word carries the brackets that open right before it and close right after it:

    the    →  (the        one constituent starts at word 0
    old    →  (old        another starts at word 1
    man    →  man))       both end after word 2

so a tree is its words plus the half-open spans [start, end) of its constituents. Listed in pre-order, parents before
children and left before right, spans need no pointers: which one contains which is implied, even for a constituent
whose only child is another one over the same words. Nothing here recurses, so depth is no limit.

Brackets inside words are written -LRB- and -RRB-, as in the Penn Treebank, and turned back when read. White space
inside a word (a model of characters has such words) is written ▁, so that a tree always is one line; it stays ▁.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from prpn.errors import InputError

VISIBLE_SPACES = str.maketrans(dict.fromkeys(" \t\n\r\f\v", "▁"))
_ESCAPES = VISIBLE_SPACES | str.maketrans({"(": "-LRB-", ")": "-RRB-"})
_TOKEN = re.compile(r"[()]|[^() \t\n\r\f\v]+")


class Constituent(NamedTuple):
    """The words start, …, end − 1 of a sentence, seen as one phrase."""

    start: int
    end: int
    label: str | None = None


def bracketed(words: Sequence[str], constituents: Iterable[Constituent]) -> list[str]:
    """Write each word with the brackets around it; joined by spaces they are the tree as text."""
    opening: list[list[str]] = [[] for _ in words]
    closing = [0] * len(words)
    for start, end, label in constituents:
        opening[start].append("(" if label is None else f"({label} ")
        closing[end - 1] += 1
    return [
        "".join(before) + word.translate(_ESCAPES) + ")" * after
        for before, word, after in zip(opening, words, closing, strict=True)
    ]


def read_brackets(text: str, place: str) -> tuple[tuple[str, ...], tuple[Constituent, ...]]:
    """Read words and constituents of one tree without labels; `place` is where the text stands, for error messages."""
    words: list[str] = []
    constituents: list[Constituent] = []
    unclosed: list[tuple[int, int]] = []  # (index in constituents, column of the bracket)
    for token in _TOKEN.finditer(text):
        column = token.start() + 1
        if not unclosed and (constituents or token[0] != "("):
            cause = "after" if constituents else "before"
            raise InputError(place, f"'{token[0]}' at column {column} stands {cause} the tree", "give one tree a line")
        if token[0] == "(":
            unclosed.append((len(constituents), column))
            constituents.append(Constituent(len(words), len(words)))
        elif token[0] == ")":
            index, opened = unclosed.pop()
            constituents[index] = constituents[index]._replace(end=len(words))
            if constituents[index].start == len(words) and index > 0:
                raise InputError(place, f"the bracket opened at column {opened} has no words", "remove it")
        else:
            words.append(token[0].replace("-LRB-", "(").replace("-RRB-", ")"))
    if unclosed:
        raise InputError(place, f"the bracket opened at column {unclosed[-1][1]} is never closed")
    if not constituents:
        raise InputError(place, "no tree here", "a tree looks like (the (old man))")
    return tuple(words), tuple(constituents) if words else ()
