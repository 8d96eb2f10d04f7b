"""How a line of text becomes the tokens a model reads: split, then normalise.

    split       unicode      words and punctuation of any language that writes spaces (`unicode_words`)
                penn         English as in the Penn Treebank (`penn`)
                characters   the stripped line, every character a token, white space as `_`
                none         at white space: the text is tokenised already
    normalise   brackets     `(` as `-LRB-`, for `penn` alone, which a tree or text that is split already may hold
                lowercase    every token but the special ones
                digits       N: each run of digits as one `N`: 1,000 → N,N and 1980s → Ns
                             number: a word that is a number as `N`: 1,000 → N, but 1980s stays
                             Text that has `N` already keeps it, whatever the case.

In words, `<unk>`, `<s>` and `</s>` are single tokens whatever stands beside them; `<UNK>` and `<eos>` are other
spellings of `<unk>` and `</s>`.

A line may come in pieces. Words are a function of their chunk (what stands between two spaces) and of whether it is
the last of its line, so `stream` keeps back the last chunk of a piece; of characters it keeps back the white space,
which may prove to end the line, and the digits, whose run may go on. So the cut changes no token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from prpn.config import TextConfig
from prpn.errors import ConfigError
from prpn.text import penn, unicode_words
from prpn.text.pieces import Piece, side_by_side
from prpn.text.vocabulary import END, SPECIAL_TOKENS, UNKNOWN

SPACE = "_"
"""What a space is written as among characters."""

_SPELLINGS = {**{token: token for token in SPECIAL_TOKENS}, "<UNK>": UNKNOWN, "<eos>": END}
_SPECIAL = re.compile("({})".format("|".join(map(re.escape, _SPELLINGS))))
DIGITS = "N"
"""What digits are written as, where they are not kept."""
_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"[.'+-]?\d+(?:(?:[-.,:/]|\\/)\d+)*\.?")
_WHITE_SPACE = re.compile(r"\s")
_CHUNK = re.compile(r"\S+")
# Words repeat: remembering this many chunks makes all but the rare ones a look-up, in some tens of megabytes.
_REMEMBERED_CHUNKS = 1 << 17
_LONGEST_REMEMBERED = 100


class Tokenizer:
    """The tokenizer of a text configuration; `tokenized` says that this text is split into words already."""

    def __init__(self, config: TextConfig, tokenized: bool = False) -> None:
        if tokenized and config.tokenizer == "characters":
            raise ConfigError("leave out --tokenized: a model of characters reads a text as it is")
        self.config = config
        self.tokenized = tokenized
        self.by_character = config.tokenizer == "characters"
        self._brackets = penn.BRACKETS if config.tokenizer == "penn" else {}
        self._remembered_tokens = lru_cache(maxsize=_REMEMBERED_CHUNKS)(self._tokens_of_chunk)

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[TextConfig, bool]]:
        """What is remembered stays behind."""
        return type(self), (self.config, self.tokenized)

    def tokens(self, line: str) -> list[str]:
        """Split and normalise a line: what the model reads."""
        if self.by_character:
            return self._symbols(line.strip())
        return self._words(line, whole=True)

    def words(self, line: str) -> list[str]:
        """Split a line: what a reader should see, word for word the `tokens` before they are normalised."""
        chunks = self.chunks(line)
        return [word for place, chunk in enumerate(chunks, 1) for word in self.split_chunk(chunk, place == len(chunks))]

    def chunks(self, line: str) -> list[str]:
        """Cut a line into what is split on its own: at white space, or into its tokens if these are characters."""
        return self.tokens(line) if self.by_character else line.split()

    def split_chunk(self, chunk: str, is_last: bool) -> list[str]:
        """Split a chunk into words as they are written; `is_last` when it ends the line."""
        return [piece.text for piece in self.pieces_of_chunk(chunk, is_last)]

    def pieces_of_chunk(self, chunk: str, is_last: bool) -> list[Piece]:
        """The same words, and which characters of the chunk each stands for."""
        if self.tokenized or self.config.tokenizer in ("none", "characters"):
            return [Piece(chunk, 0, len(chunk))]
        if "<" not in chunk:
            return self._split_plain(chunk, is_last)
        parts = side_by_side(part for part in _SPECIAL.split(chunk) if part)
        words: list[Piece] = []
        for part in parts:
            split = [part] if part.text in _SPELLINGS else self._split_plain(part.text, is_last and part is parts[-1])
            words += split if part.text in _SPELLINGS else [piece.moved(part.begin) for piece in split]
        return words

    def pieces(self, line: str) -> list[Piece]:
        """The words of a line, and which characters of it each stands for."""
        if self.by_character:
            stripped = line.strip()
            return [piece.moved(line.index(stripped)) for piece in side_by_side(self._symbols(stripped))]
        chunks = list(_CHUNK.finditer(line))
        return [
            piece.moved(chunk.start())
            for chunk in chunks
            for piece in self.pieces_of_chunk(chunk.group(), chunk is chunks[-1])
        ]

    def normalize(self, word: str) -> str:
        """Write a word as the model reads it."""
        if word in _SPELLINGS:
            return _SPELLINGS[word]
        word = self._brackets.get(word, word)
        digits = self.config.digits
        if digits != "keep" and (word == DIGITS or (digits == "number" and _NUMBER.fullmatch(word))):
            return DIGITS
        if self.config.lowercase:
            word = word.lower()
        return _DIGITS.sub(DIGITS, word) if digits == "N" else word

    @property
    def exceptions(self) -> frozenset[str]:
        """Words of ASCII letters, in lower case, that may not be left whole; all others are, whatever their case.

        Normalising these others puts them into lower case, if the model has lower case, and does nothing else.
        """
        return penn.FUSED_LETTERS | {DIGITS.lower()}

    def stream(self, pieces: Iterable[tuple[int, str, bool]]) -> Iterator[tuple[list[str], bool]]:
        """(tokens, whether they end a line) of lines that come in pieces, as `read_pieces` gives them."""
        return self._stream_characters(pieces) if self.by_character else self._stream_words(pieces)

    def _stream_words(self, pieces: Iterable[tuple[int, str, bool]]) -> Iterator[tuple[list[str], bool]]:
        held = ""
        for _, piece, ends_line in pieces:
            text = held + piece
            if ends_line:
                held = ""
                yield self._words(text, whole=True), True
            else:
                complete, *last = text.rsplit(maxsplit=1) or [""]
                if not last:
                    complete = ""
                held = text[len(complete) :]
                yield self._words(complete, whole=False), False

    def _stream_characters(self, pieces: Iterable[tuple[int, str, bool]]) -> Iterator[tuple[list[str], bool]]:
        held, line_has_begun = "", False
        for _, piece, ends_line in pieces:
            text = held + piece
            if not line_has_begun:
                text = text.lstrip()
            complete = text.rstrip()
            if not ends_line and self.config.digits == "N":
                complete = complete[: len(complete) - _count_final_digits(complete)]
            held = "" if ends_line else text[len(complete) :]
            line_has_begun = not ends_line and (line_has_begun or complete != "")
            yield self._symbols(complete), ends_line

    def _words(self, text: str, whole: bool) -> list[str]:
        """Normalised words; unless `whole`, more of the line follows and no chunk is its last."""
        chunks = text.split()
        if not chunks:
            return []
        of_chunk: Callable[[str, bool], list[str]] = self._remembered_tokens
        if max(map(len, chunks)) > _LONGEST_REMEMBERED:
            of_chunk = self._tokens_of_chunk
        tokens = [token for chunk in chunks[:-1] for token in of_chunk(chunk, False)]
        tokens += of_chunk(chunks[-1], whole)
        return tokens

    def _tokens_of_chunk(self, chunk: str, is_last: bool) -> list[str]:
        return [self.normalize(word) for word in self.split_chunk(chunk, is_last)]

    def _split_plain(self, chunk: str, is_last: bool) -> list[Piece]:
        if self.config.tokenizer == "penn":
            return penn.split_chunk(chunk, is_last)
        return side_by_side(unicode_words.split_chunk(chunk))

    def _symbols(self, text: str) -> list[str]:
        if self.config.lowercase:
            # One by one: the lower case of Σ depends on its neighbours, which a cut may hide.
            text = "".join(map(str.lower, text))
        if self.config.digits == "N":
            text = _DIGITS.sub(DIGITS, text)
        return list(_WHITE_SPACE.sub(SPACE, text))


def _count_final_digits(text: str) -> int:
    count = 0
    while count < len(text) and text[-1 - count].isdecimal():
        count += 1
    return count
