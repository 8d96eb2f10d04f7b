"""A part of a text that was split: what is written for it, and which characters it stands for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Piece(NamedTuple):
    """The characters begin, …, end − 1, written as `text`."""

    text: str
    begin: int
    end: int

    def moved(self, by: int) -> Piece:
        """The same within a text that begins so many characters earlier."""
        return Piece(self.text, self.begin + by, self.end + by)


def side_by_side(texts: Iterable[str]) -> list[Piece]:
    """Parts that together are the whole text."""
    pieces, begin = [], 0
    for text in texts:
        pieces.append(Piece(text, begin, begin + len(text)))
        begin += len(text)
    return pieces
