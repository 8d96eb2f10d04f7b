"""The lines of a text as tokens, each closed by `</s>` where line ends mean something.

The count of characters, for bits per character, is that of the tokenised text: a word's length plus one for the space
or line end after it; `</s>` is that line end and adds none. In a character model every symbol is one character.
Where line ends mean nothing (`text.line_ends = false`), a line end between characters is read as a space.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from prpn.text.tokenizer import SPACE, Tokenizer
from prpn.text.vocabulary import END

Pieces = Iterable[tuple[int, str, bool]]
"""A text as `read_pieces` gives it."""


def closed_lines(texts: Iterable[Pieces], tokenizer: Tokenizer) -> Iterator[list[str]]:
    """Give the tokens of every line, or of every piece of a long line, with what closes it."""
    return (tokens for _, tokens in numbered_lines(texts, tokenizer))


def numbered_lines(texts: Iterable[Pieces], tokenizer: Tokenizer) -> Iterator[tuple[int, list[str]]]:
    """The tokens of `closed_lines`, with the number of their line."""
    config = tokenizer.config
    joins_lines = tokenizer.by_character and not config.line_ends
    text_has_begun = False
    for pieces in texts:
        number, last = 1, ""
        for tokens, ends_line in tokenizer.stream(pieces):
            if tokens:
                if joins_lines and text_has_begun and not last:
                    yield number, [SPACE]
                last, text_has_begun = tokens[-1], True
            if ends_line:
                # A text may bring its own `</s>`: a line is not closed twice.
                if config.line_ends and last != END and (last or config.blank_lines):
                    tokens = [*tokens, END]
                last = ""
            yield number, tokens
            number += ends_line


def pieces_of(text: str) -> Pieces:
    """A string as the pieces of a file with that content."""
    return ((number, line, True) for number, line in enumerate(text.removesuffix("\n").split("\n"), 1))


def token_lengths(tokens: Sequence[str], by_character: bool) -> NDArray[np.int64]:
    """How many characters of the text each token stands for."""
    if by_character:
        return np.ones(len(tokens), dtype=np.int64)
    return np.array([0 if token == END else len(token) + 1 for token in tokens], dtype=np.int64)
