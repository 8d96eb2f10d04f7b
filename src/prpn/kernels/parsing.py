"""Parsing in the native core (native/parsing*.cpp): scores from look-up tables, and text that becomes trees.

    block of lines ──> chunks ──> words ──> scores ──> trees ──> lines
                         └ unknown ones are asked of `split` and `encode`, once

A chunk of ASCII letters is one word whatever the tokenizer, but for some exceptions, so these need not be asked about;
nor those that are not among the `plain_words`, unless `unknown` is −1: their number depends on the word then.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from prpn.config import Builder
from prpn.kernels.native import required_library

if TYPE_CHECKING:
    from prpn.parsing.folded import Array, Folded

Number = TypeVar("Number", np.int32, np.int64)
Format = Literal["brackets", "spans", "jsonl"]
FORMATS: tuple[Format, ...] = ("brackets", "spans", "jsonl")
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
    required_library().prpn_parsing_rows(
        embedding.ctypes.data, kernel.ctypes.data, *kernel.shape, ids.ctypes.data, len(ids), rows.ctypes.data, threads()
    )


def scores(
    folded: Folded,
    table: Array,
    slots: NDArray[np.int32],
    first: int,
    ends: NDArray[np.int64],
    out: Array,
    begin: int,
) -> None:
    """Fill in the scores of the words from `begin` on; `slots` has the rows in `table` of the words from `first` on."""
    rows = folded.rows
    required_library().prpn_parsing_scores(
        table.ctypes.data, folded.bias.ctypes.data, folded.head.ctypes.data, folded.head_bias,
        rows.channels, rows.windows, folded.lookahead, rows.SILENCE, rows.START, slots.ctypes.data, first,
        ends.ctypes.data, len(ends), begin, begin + len(out), out.ctypes.data, threads(),
    )  # fmt: skip


class TextWithTrees:
    """A reader of blocks of lines and writer of their trees, in that order for each block."""

    def __init__(
        self,
        form: Format,
        split: Callable[[str, bool], Sequence[str]],
        encode: Callable[[Iterable[str]], list[int]],
        plain_words: Mapping[str, int],
        exceptions: Iterable[str],
        *,
        lowercase: bool,
        unknown: int,
    ) -> None:
        self._split, self._encode = split, encode
        self._handle = required_library().prpn_text_new(
            FORMATS.index(form), lowercase, unknown, REMEMBERED_CHUNKS, REMEMBERED_BYTES
        )
        words = {**plain_words, **dict.fromkeys(exceptions, -1)}
        ids = np.fromiter(words.values(), dtype=np.int32)
        required_library().prpn_text_plain_words(self._handle, _one_a_line(words), ids.ctypes.data, len(ids))

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            required_library().prpn_text_delete(self._handle)

    def read(self, block: bytes) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Ids of all words of some lines of UTF-8, and where each line ends in them: both until the next block."""
        library, pointers = required_library(), (ctypes.c_void_p(), ctypes.c_void_p())
        if library.prpn_text_read(self._handle, block, len(block), threads()):
            size = library.prpn_text_unknown(self._handle, ctypes.byref(pointers[0]))
            self._define(_view_at(pointers[0], size).tobytes())
        lines = library.prpn_text_words(self._handle, threads(), *map(ctypes.byref, pointers))
        ends = _array_at(pointers[1], lines, np.int64)
        return _array_at(pointers[0], int(ends[-1]) if lines else 0, np.int32), ends

    def write(self, scores: Array, distances: NDArray[np.float64] | None, builder: Builder) -> Iterator[memoryview]:
        """The trees of these lines, one a line, in pieces; each is good until the next block."""
        library, place = required_library(), ctypes.c_void_p()
        written = None if distances is None else distances.ctypes.data
        parts = library.prpn_text_write(self._handle, scores.ctypes.data, written, BUILDERS.index(builder), threads())
        for part in range(parts):
            size = library.prpn_text_part(self._handle, part, ctypes.byref(place))
            yield _view_at(place, size)

    def _define(self, unknown: bytes) -> None:
        chunks = [self._split(line[1:], line[0] == "1") for line in unknown.decode().split("\n")[:-1]]
        words = [word for chunk in chunks for word in chunk]
        ids = np.array(self._encode(words), dtype=np.int32)
        counts = np.fromiter(map(len, chunks), dtype=np.int64)
        text = _one_a_line(words)
        required_library().prpn_text_define(self._handle, text, len(text), ids.ctypes.data, counts.ctypes.data)


def _one_a_line(words: Iterable[str]) -> bytes:
    return "".join(f"{word}\n" for word in words).encode()


def _view_at(place: ctypes.c_void_p, size: int) -> memoryview:
    return memoryview((ctypes.c_char * size).from_address(place.value or 0)).cast("B") if size else memoryview(b"")


def _array_at(place: ctypes.c_void_p, count: int, kind: type[Number]) -> NDArray[Number]:
    return np.frombuffer(_view_at(place, count * np.dtype(kind).itemsize), dtype=kind)
