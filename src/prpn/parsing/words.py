"""Sentences as flat arrays: their words, the numbers of these in the vocabulary, and where each sentence ends.

    the old man | we saw     ──>    words  the old man we saw      ids  4 17 9 30 21      ends  3 5

A chunk of text (what stands between two spaces) becomes the same words wherever it stands, but for the end of a line,
so each is split and looked up once. A sentence that is a list is taken as words already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prpn.errors import InputError
from prpn.text.tokenizer import Tokenizer
from prpn.text.vocabulary import Vocabulary

REMEMBERED_CHUNKS = 1 << 17
_SPACE = re.compile(r"[ \t\n\r]")

Sentence = str | Sequence[str]


@dataclass(frozen=True)
class Sentences:
    """Some sentences, one after the other."""

    words: list[str]
    ids: NDArray[np.int32]
    ends: NDArray[np.int64]


class WordReader:
    """Reads sentences for one model; any number of threads may use it at once."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: Vocabulary) -> None:
        self._tokenizer = tokenizer
        self._inside, self._last = (_Remembered(tokenizer, vocabulary, is_last) for is_last in (False, True))
        self._whole = _Remembered(Tokenizer(tokenizer.config, not tokenizer.by_character), vocabulary, False)

    def read(self, sentences: Iterable[Sentence]) -> Sentences:
        """Words, ids and ends of some sentences."""
        words: list[str] = []
        ids: list[int] = []
        ends: list[int] = []
        for sentence in sentences:
            if isinstance(sentence, str):
                if chunks := self._tokenizer.chunks(sentence):
                    final = self._last[chunks.pop()]
                    for some_words, their_ids in map(self._inside.__getitem__, chunks):
                        words += some_words
                        ids += their_ids
                    words += final[0]
                    ids += final[1]
            else:
                words += sentence
                for _, their_ids in map(self._whole.__getitem__, sentence):
                    ids += their_ids
            ends.append(len(words))
        return Sentences(words, np.array(ids, dtype=np.int32), np.array(ends, dtype=np.int64))


def checked(sentence: object, place: str = "the sentence") -> Sentence:
    """A sentence as text, or as a list of words; anything else is refused, and so is what only looks like words."""
    if isinstance(sentence, str):
        return sentence
    if not isinstance(sentence, Sequence) or isinstance(sentence, bytes | bytearray):
        raise InputError(place, f"is {_kind(sentence)}, not text", "give a string, or a list of words")
    for word in sentence:
        if not isinstance(word, str):
            raise InputError(place, f"holds {_kind(word)} among its words", "give strings")
        if not word:
            raise InputError(place, "has an empty word", "leave it out")
        if len(word) > 1 and _SPACE.search(word):  # among characters a space is one of them
            shown = word if len(word) <= 40 else f"{word[:40]}…"
            cause = f"has the word {shown!r}, but a list holds the words of one sentence"
            raise InputError(place, cause, "for several sentences use pipe, with a list of strings")
    return sentence


def _kind(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


class _Remembered(dict[str, tuple[list[str], list[int]]]):
    """The words of a chunk and their ids, worked out once."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: Vocabulary, is_last: bool) -> None:
        self._tokenizer, self._vocabulary, self._is_last = tokenizer, vocabulary, is_last

    def __missing__(self, chunk: str) -> tuple[list[str], list[int]]:
        if len(self) >= REMEMBERED_CHUNKS:
            self.clear()
        words = self._tokenizer.split_chunk(chunk, self._is_last)
        found = self[chunk] = words, self._vocabulary.encode(map(self._tokenizer.normalize, words))
        return found
