"""Text in, trees as text out, block by block, with nothing in between that is not needed to write them.

    lines ──> words and their ids ──> scores ──> constituents ──> lines

The native core does all of it but the splitting of chunks it has not met. Numpy and Python do the same where it is not
in use, and for models of characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from prpn.config import Builder
from prpn.errors import InputError
from prpn.kernels.parsing import Format, TextWithTrees
from prpn.parsing.folded import native_in_use
from prpn.parsing.parser import Parser
from prpn.text.files import read_line_blocks
from prpn.text.tokenizer import Tokenizer
from prpn.text.vocabulary import Vocabulary
from prpn.trees.lines import Trees, as_json

REMEMBERED_CHUNKS = 1 << 17

Numbers = NDArray[np.float32] | NDArray[np.float64]
Written = Iterable[bytes | memoryview]
Writer = Callable[[bytes], Written]
"""Takes some lines of text and gives as many lines, which are good until it is used again."""


def parse_text(
    parser: Parser, path: str, form: Format, builder: Builder | None = None, *, tokenized: bool = False
) -> Iterator[tuple[int, Written, InputError | None]]:
    """(number of lines, the trees in their places, the error if it is a line that is not text), in order."""
    write = writer(parser, form, builder or parser.builder, tokenized)
    for block in read_line_blocks(path):
        if isinstance(block, bytes):
            yield block.count(b"\n"), write(block), None
        else:
            empty = as_json([], "", [], [], error=str(block)) if form == "jsonl" else ""
            yield 1, [f"{empty}\n".encode()], block


def writer(parser: Parser, form: Format, builder: Builder, tokenized: bool) -> Writer:
    """The fastest writer that can be used."""
    native = native_in_use() and not parser.tokenizer.by_character
    written = (_native_writer if native else _writer)(parser, form, builder, tokenized)

    def write(block: bytes) -> Written:
        lines, scores = written(block)
        if np.isnan(scores).any():
            list(parser.parse_many(block.decode().split("\n"), builder, tokenized=tokenized))  # says where
        return lines

    return write


def _native_writer(
    parser: Parser, form: Format, builder: Builder, tokenized: bool
) -> Callable[[bytes], tuple[Written, Numbers]]:
    tokenizer, vocabulary = parser.tokenizer_for(tokenized), parser.vocabulary
    text = TextWithTrees(
        form,
        tokenizer.split_chunk,
        lambda words: vocabulary.encode(map(tokenizer.normalize, words)),
        {word: index for index, word in enumerate(vocabulary.tokens) if word.isascii() and word.isalpha()},
        tokenizer.exceptions,
        lowercase=tokenizer.config.lowercase,
        unknown=-1 if vocabulary.has_classes else vocabulary.unknown,
    )

    def write(block: bytes) -> tuple[Written, Numbers]:
        scores = parser.network.scores(*text.read(block))
        distances = parser.activated(scores.astype(np.float64)) if form == "jsonl" else None
        return text.write(parser.in_units(scores, builder), distances, builder), scores

    return write


def _writer(
    parser: Parser, form: Format, builder: Builder, tokenized: bool
) -> Callable[[bytes], tuple[Written, Numbers]]:
    tokenizer = parser.tokenizer_for(tokenized)
    inside, last = (_Remembered(tokenizer, parser.vocabulary, is_last) for is_last in (False, True))

    def read(text: str) -> tuple[list[str], list[int], list[int]]:
        words: list[str] = []
        ids: list[int] = []
        ends: list[int] = []
        for line in text.split("\n")[:-1]:
            chunks = tokenizer.chunks(line)
            if chunks:
                final = last[chunks.pop()]
                for some_words, their_ids in map(inside.__getitem__, chunks):
                    words += some_words
                    ids += their_ids
                words += final[0]
                ids += final[1]
            ends.append(len(words))
        return words, ids, ends

    def write(block: bytes) -> tuple[Written, Numbers]:
        words, ids, line_ends = read(block.decode())
        ends = np.array(line_ends, dtype=np.int64)
        scores = parser.network.scores(np.array(ids, dtype=np.int32), ends).astype(np.float64)
        trees = Trees.build(words, ends, parser.in_units(scores, builder), builder)
        if form == "jsonl":
            lines = trees.json(parser.activated(scores))
        else:
            lines = trees.brackets() if form == "brackets" else trees.spans_as_text()
        return ["".join(f"{line}\n" for line in lines).encode()], scores

    return write


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
