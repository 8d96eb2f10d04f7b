"""Trees as text: `(the (old man))`, and back.

Written flat, word by word, each word carries the brackets that open right before it and close right after it:

    the    →  (the        one constituent starts at word 0
    old    →  (old        another starts at word 1
    man    →  man))       both end after word 2

so a tree is its words plus the half-open spans [start, end) of its constituents. Listed in pre-order, parents before
children and left before right, spans need no pointers: which one contains which is implied, even for a constituent
whose only child is another one over the same words. Nothing here recurses, so depth is no limit.

Brackets inside words and labels are written -LRB- and -RRB-, as in the Penn Treebank, and turned back in words when
read. White space inside a word (a model of characters has such words) is written ▁, so that a tree always is one line;
it stays ▁.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from prpn.errors import InputError

VISIBLE_SPACES = str.maketrans(dict.fromkeys(" \t\n\r\f\v", "▁"))
_ESCAPES = VISIBLE_SPACES | str.maketrans({"(": "-LRB-", ")": "-RRB-"})
TOKEN = re.compile(r"[()]|[^() \t\n\r\f\v]+")


class Constituent(NamedTuple):
    """The words start, …, end − 1 of a sentence, seen as one phrase."""

    start: int
    end: int
    label: str | None = None


def escaped(word: str) -> str:
    """Write a word without brackets and white space."""
    return word.translate(_ESCAPES)


def bracketed(words: Sequence[str], constituents: Iterable[Constituent]) -> list[str]:
    """Write each word with the brackets around it; joined by spaces they are the tree as text."""
    opening: list[list[str]] = [[] for _ in words]
    closing = [0] * len(words)
    for start, end, label in constituents:
        opening[start].append("(" if label is None else f"({escaped(label)} ")
        closing[end - 1] += 1
    return [
        "".join(before) + escaped(word) + ")" * after
        for before, word, after in zip(opening, words, closing, strict=True)
    ]


def read_brackets(text: str, place: str) -> tuple[tuple[str, ...], tuple[Constituent, ...]]:
    """Read words and constituents of one tree without labels; `place` is where the text stands, for error messages."""
    found = list(TOKEN.finditer(text))
    return assemble([token[0] for token in found], False, lambda i: f"{place}, column {found[i].start() + 1}", place)


def assemble(
    tokens: Sequence[str], labelled: bool, place_of: Callable[[int], str], place: str
) -> tuple[tuple[str, ...], tuple[Constituent, ...]]:
    """Words and constituents of one tree, given as brackets, labels and words.

    `labelled`: each word stands alone in a bracket with its tag, `(NN man)`, and what follows any other bracket
    directly is its label. Errors begin with the place of the token at fault.
    """
    words: list[str] = []
    constituents: list[Constituent] = []
    unclosed: list[tuple[int, int]] = []  # (index in constituents, index of the bracket)
    for i, token in enumerate(tokens):
        if not unclosed and (constituents or token != "("):
            cause = "after" if constituents else "before"
            raise InputError(place_of(i), f"'{token}' stands {cause} the tree", "a tree looks like (the (old man))")
        if token == "(":
            unclosed.append((len(constituents), i))
            constituents.append(Constituent(len(words), len(words)))
        elif token == ")":
            index, opened = unclosed.pop()
            constituents[index] = constituents[index]._replace(end=len(words))
            if constituents[index].start == len(words) and (index > 0 or opened < i - 1):
                raise InputError(place_of(opened), "the bracket opened here has no words", "remove it")
        elif labelled and tokens[i - 1] == "(":
            constituents[-1] = constituents[-1]._replace(label=token)
        elif labelled and (tokens[i - 2] != "(" or tokens[i - 1] == ")" or (tokens[i + 1 : i + 2] or ")")[0] != ")"):
            raise InputError(place_of(i), f"'{token}' is not alone with its tag", "write (TAG word)")
        else:
            words.append(token.replace("-LRB-", "(").replace("-RRB-", ")"))
    if unclosed:
        raise InputError(place_of(unclosed[-1][1]), "the bracket opened here is never closed")
    if not constituents:
        raise InputError(place, "no tree here", "a tree looks like (the (old man))")
    return tuple(words), tuple(constituents) if words else ()
