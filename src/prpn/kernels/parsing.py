"""Parsing in the native core (native/parsing*.cpp): scores from look-up tables, and text that becomes trees.

    block of lines ──> chunks ──> words ──> scores ──> trees ──> lines
                         └ unknown ones are asked of `split` and `encode`, once

Each of them checks what it is given. Any number of Python threads may score and make rows at once, as long as nobody
changes what they read; a text is one thread's at a time, and refuses another.

A chunk of ASCII letters is one word whatever the tokenizer, but for some exceptions, so these need not be asked about;
nor those that are not among the `plain_words`, unless `unknown` is −1: their number depends on the word then.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from prpn.config import Builder
from prpn.kernels.checked import place, place_to_fill
from prpn.kernels.native import required_library

if TYPE_CHECKING:
    from prpn.parsing.folded import Array, Folded
    from prpn.text.pieces import Piece

Number = TypeVar("Number", np.int32, np.int64)
Format = Literal["brackets", "spans", "jsonl", "labelled"]
FORMATS: tuple[Format, ...] = get_args(Format)  # numbered as in native/parsing_lines.h
BUILDERS: tuple[Builder, ...] = get_args(Builder)  # numbered as in native/parsing_trees.h
REMEMBERED_CHUNKS, REMEMBERED_BYTES = 1 << 20, 1 << 28
"""Beyond either, all chunks are forgotten: text without end, in bounded memory."""


@cache
def threads() -> int:
    """Threads that parsing may use: OMP_NUM_THREADS, or one for each processor that this process may run on."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_rows(embedding: Array, kernel: Array, ids: NDArray[np.int32], rows: Array) -> None:
    """Fill in the rows (n, columns) of some words: embedding[ids] @ kernel."""
    (words, size), columns = embedding.shape, kernel.shape[-1]
    required_library().prpn_parsing_rows(
        place(embedding, np.float32, words, size), words, place(kernel, np.float32, size, columns), size, columns,
        place(ids, np.int32, len(ids)), len(ids), place_to_fill(rows, np.float32, len(ids), columns), threads(),
    )  # fmt: skip


def scores(
    folded: Folded,
    table: Array,
    slots: NDArray[np.int32],
    first: int,
    ends: NDArray[np.int64],
    out: Array,
    begin: int,
    workers: int | None = None,
) -> None:
    """Fill in the scores of the words from `begin` on; `slots` has the rows in `table` of the words from `first` on."""
    rows, channels = folded.rows, folded.rows.channels
    required_library().prpn_parsing_scores(
        place(table, np.float32, len(table), rows.windows * channels), len(table),
        place(folded.bias, np.float32, channels), place(folded.head, np.float32, channels), folded.head_bias,
        channels, rows.windows, folded.lookahead, rows.SILENCE, rows.START,
        place(slots, np.int32, len(slots)), len(slots), first, place(ends, np.int64, len(ends)), len(ends),
        begin, begin + len(out), place_to_fill(out, np.float32, len(out)), workers or threads(),
    )  # fmt: skip


def spans(
    scores: Array, ends: NDArray[np.int64], builder: Builder, workers: int | None = None
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """The same as `trees.from_distances.spans_of_many`."""
    span_ends = np.cumsum(np.maximum(np.diff(ends, prepend=0) - 1, 0))
    count = int(span_ends[-1]) if len(ends) else 0
    starts, stops = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)
    required_library().prpn_parsing_spans(
        place(scores, np.float32, len(scores)), len(scores), place(ends, np.int64, len(ends)), len(ends),
        BUILDERS.index(builder), starts.ctypes.data, stops.ctypes.data, count, workers or threads(),
    )  # fmt: skip
    return starts, stops, span_ends


class TextWithTrees:
    """A reader of blocks of lines and writer of their trees, in that order for each block.

    Without a form no trees are written, but the places of words in their lines are known.
    """

    def __init__(
        self,
        form: Format | None,
        split: Callable[[str, bool], Sequence[Piece]],
        encode: Callable[[Iterable[str]], list[int]],
        plain_words: Mapping[str, int],
        exceptions: Iterable[str],
        *,
        lowercase: bool,
        unknown: int,
        workers: int | None = None,
    ) -> None:
        self._split, self._encode, self._workers = split, encode, workers
        handle = ctypes.c_void_p()
        required_library().prpn_text_new(
            len(FORMATS) if form is None else FORMATS.index(form),
            lowercase,
            unknown,
            REMEMBERED_CHUNKS,
            REMEMBERED_BYTES,
            ctypes.byref(handle),
        )
        self._handle, self._words = handle, 0
        words = {**plain_words, **dict.fromkeys(exceptions, -1)}
        ids, text = np.fromiter(words.values(), dtype=np.int32), _one_a_line(words)
        required_library().prpn_text_plain_words(self._handle, text, len(text), ids.ctypes.data, len(ids))

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            required_library().prpn_text_delete(self._handle)

    def read(self, block: bytes) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Ids of all words of some lines of UTF-8, and where each line ends in them: both until the next block."""
        library, unknown = required_library(), ctypes.c_int64()
        library.prpn_text_read(self._handle, block, len(block), self._threads(), ctypes.byref(unknown))
        if unknown.value:
            self._define(bytes(_view_of(library.prpn_text_unknown, self._handle)).decode())
        places, lines = (ctypes.c_void_p(), ctypes.c_void_p()), ctypes.c_int64()
        library.prpn_text_words(self._handle, self._threads(), *map(ctypes.byref, (*places, lines)))
        ends = _array_at(places[1], lines.value, np.int64)
        self._words = int(ends[-1]) if lines.value else 0
        return _array_at(places[0], self._words, np.int32), ends

    def offsets(self) -> NDArray[np.int32]:
        """Where each of these words begins and ends in its line, in characters (words, 2)."""
        found, count = ctypes.c_void_p(), ctypes.c_int64()
        required_library().prpn_text_offsets(self._handle, ctypes.byref(found), ctypes.byref(count))
        return _array_at(found, count.value, np.int32).reshape(-1, 2).copy()

    def write(self, scores: Array, distances: NDArray[np.float64] | None, builder: Builder) -> Iterator[memoryview]:
        """The trees of these lines, one a line, in pieces; each is good until the next block."""
        library, parts = required_library(), ctypes.c_int64()
        library.prpn_text_write(
            self._handle, place(scores, np.float32, self._words),
            None if distances is None else place(distances, np.float64, self._words), self._words,
            BUILDERS.index(builder), self._threads(), ctypes.byref(parts),
        )  # fmt: skip
        for part in range(parts.value):
            yield _view_of(library.prpn_text_part, self._handle, part)

    def _threads(self) -> int:
        return self._workers or threads()

    def _define(self, unknown: str) -> None:
        chunks = [self._split(line[1:], line[0] == "1") for line in unknown.split("\n")[:-1]]
        words = [piece.text for chunk in chunks for piece in chunk]
        offsets = np.array([(piece.begin, piece.end) for chunk in chunks for piece in chunk], dtype=np.int32)
        ids = np.array(self._encode(words), dtype=np.int32)
        counts = np.fromiter(map(len, chunks), dtype=np.int64)
        text = _one_a_line(words)
        required_library().prpn_text_define(
            self._handle, text, len(text), place(ids, np.int32, len(ids)), offsets.ctypes.data, len(ids),
            counts.ctypes.data, len(counts),
        )  # fmt: skip


def _one_a_line(words: Iterable[str]) -> bytes:
    return "".join(f"{word}\n" for word in words).encode()


def _view_of(function: Callable[..., int], *arguments: Any) -> memoryview:
    """What a function says where to find."""
    found, size = ctypes.c_void_p(), ctypes.c_int64()
    function(*arguments, ctypes.byref(found), ctypes.byref(size))
    return _view_at(found, size.value)


def _view_at(start: ctypes.c_void_p, size: int) -> memoryview:
    return memoryview((ctypes.c_char * size).from_address(start.value or 0)).cast("B") if size else memoryview(b"")


def _array_at(start: ctypes.c_void_p, count: int, kind: type[Number]) -> NDArray[Number]:
    return np.frombuffer(_view_at(start, count * np.dtype(kind).itemsize), dtype=kind)
