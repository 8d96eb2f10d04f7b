r"""Reading text in bounded memory: plain, compressed or standard input, as pieces of decoded lines.

    bytes ── decompress ── cut at "\n", or after `PIECE_BYTES` ── decode UTF-8 ──> (line number, piece, ends the line)

A line longer than `PIECE_BYTES` comes in several pieces, so that one line of any size can be read. The cut falls
between two characters but anywhere else; `Tokenizer.stream` makes sure that it changes no token. A line ends with
`\n` or `\r\n`, the last one also with the file; a byte order mark is dropped. Whatever is wrong with the input is an
`InputError` that names file and line.
"""

from __future__ import annotations

import codecs
import errno
import io
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from prpn.errors import InputError
from prpn.text.compression import Source, decompressed

PIECE_BYTES = 1 << 20
BLOCK_BYTES = 1 << 18
"""Lines that are worked on together: enough that starting the work costs little, few enough to stay in the cache."""
FIRST_LINES = 10_000
"""Enough of a text to judge something by it."""
STANDARD_INPUT = "-"

Piece = tuple[int, str, bool]
"""The number of a line, a piece of it, and whether the piece ends it."""
Observer = Callable[[bytes], object]
"""Is shown every block of decompressed bytes, in order: to hash, to copy or to count them."""


class LineError(InputError):
    """A line that is not text; `legible` is what can be read of it all the same."""

    def __init__(self, error: InputError, line: bytes) -> None:
        super().__init__(error.place, error.cause, error.remedy)
        self.line, self.legible = line, line.decode(errors="replace")

    def __reduce__(self) -> tuple[Any, ...]:
        """How other processes get it."""
        return type(self), (InputError(self.place, self.cause, self.remedy), self.line)


class Rewritten(str):
    """The name of a text whose lines are made anew, from the pieces of its own."""

    rewrite: Callable[[Iterator[Piece]], Iterator[str]]

    def __new__(cls, path: str, rewrite: Callable[[Iterator[Piece]], Iterator[str]]) -> Rewritten:
        """Take the name and what makes the lines."""
        name = super().__new__(cls, path)
        name.rewrite = rewrite
        return name

    def __str__(self) -> str:
        """Stay what it is where somebody makes sure of a string."""
        return self


def place_of(path: str | Path) -> str:
    """How messages call the input."""
    return "standard input" if str(path) == STANDARD_INPUT else str(path)


def legible(text: str) -> str:
    """Text fit to be written: what stands for bytes of a file's name that are not UTF-8 becomes `?`."""
    return text.encode(errors="replace").decode()


def refuse_standard_input_twice(paths: Iterable[str | Path]) -> None:
    """What was read from it is gone."""
    if [str(path) for path in paths].count(STANDARD_INPUT) > 1:
        raise InputError("standard input", "can be read only once", "name a file for all but one")


def read_pieces(path: str | Path, *, observe: Observer | None = None, may_be_empty: bool = False) -> Iterator[Piece]:
    """(line number, piece of the line, whether the piece ends its line), line ends removed."""
    with _open(path, observe) as stream:
        yield from _pieces(stream, place_of(path), may_be_empty)


def _pieces(stream: BinaryIO, place: str, may_be_empty: bool) -> Iterator[Piece]:
    number, held, line_is_open = 1, "", False
    decoder = codecs.getincrementaldecoder("utf-8")()
    while block := stream.readline(PIECE_BYTES):
        if number == 1 and not line_is_open:
            block = _without_byte_order_mark(block, place)
        ends_line = block.endswith(b"\n")
        try:
            piece = held + decoder.decode(block, final=ends_line)
        except UnicodeDecodeError as error:
            raise _not_utf8(f"{place}:{number}", error.object[error.start]) from None
        if "\0" in piece:
            raise _binary(f"{place}:{number}")
        # A carriage return belongs to the line end if the next piece begins with the line feed.
        held = "\r" if not ends_line and piece.endswith("\r") else ""
        yield number, piece.removesuffix("\n").removesuffix("\r") if ends_line or held else piece, ends_line
        number, line_is_open = number + ends_line, not ends_line
    if line_is_open:
        unfinished, _ = decoder.getstate()
        if unfinished:
            raise _not_utf8(f"{place}:{number}", unfinished[0])
        yield number, held, True
    elif number == 1 and not may_be_empty:
        raise InputError(place, "the input is empty", "give a text with one sentence a line")


def read_lines(path: str | Path) -> Iterator[tuple[int, str | LineError]]:
    """(line number, whole line): for input that is answered line by line.

    A line that is not text comes as the error it is, so that the others keep their places; no line at all is no error.
    """
    place = place_of(path)
    with _open(path, None) as stream:
        for number, line in enumerate(iter(stream.readline, b""), 1):
            text = _checked(line, place, number)
            if isinstance(text, bytes):
                yield number, text.decode().removesuffix("\n").removesuffix("\r" if text.endswith(b"\n") else "")
            else:
                yield number, text


def first_sentences(text: str, lines: int = FIRST_LINES) -> list[str]:
    """The sentences among the first lines of a text, one at least; a line that is not text is an error."""
    found = []
    for _, line in islice(read_lines(text), min(lines, sys.maxsize)):
        if isinstance(line, LineError):
            raise line
        if line.strip():
            found.append(line)
    if not found:
        raise InputError(place_of(text), "no sentence in it", "give a text with one sentence a line")
    return found


def read_line_blocks(path: str | Path) -> Iterator[bytes | LineError]:
    """Some lines of UTF-8 at a time, each with its end, or the error that a line is which is not text, in order.

    What is typed, or comes through a pipe, is not waited for.
    """
    place, number, held = place_of(path), 1, [b""]
    with _open(path, None) as stream:
        read = cast(Source, stream).read1 if str(path) == STANDARD_INPUT else stream.read
        while block := read(BLOCK_BYTES):
            lines, end, rest = block.rpartition(b"\n")
            if end:
                yield from _sound_blocks(b"".join([*held, lines, end]), place, number)
                number += block.count(b"\n")
                held = []
            held.append(rest)
    if last := b"".join(held):
        yield from _sound_blocks(last + b"\n", place, number)


def _sound_blocks(lines: bytes, place: str, number: int) -> Iterator[bytes | LineError]:
    text = _checked(lines, place, number)
    if isinstance(text, bytes):
        yield text
        return
    checked = (_checked(line, place, each) for each, line in enumerate(io.BytesIO(lines), number))
    for _, run in groupby(checked, type):
        alike = list(run)
        yield from alike if isinstance(alike[0], LineError) else [b"".join(cast(list[bytes], alike))]


def _checked(lines: bytes, place: str, number: int) -> bytes | LineError:
    """Lines from this number on without byte order mark, or what is wrong with them as if they were one."""
    try:
        text = _without_byte_order_mark(lines, place) if number == 1 else lines
        if not text.isascii():
            text.decode()
        if b"\0" in text:
            raise _binary(f"{place}:{number}")
        return text
    except UnicodeDecodeError as error:
        return LineError(_not_utf8(f"{place}:{number}", error.object[error.start]), lines)
    except InputError as error:
        return LineError(error, lines)


def read_blocks(path: str | Path) -> Iterator[bytes]:
    """Give the decompressed bytes as they are, in blocks."""
    with _open(path, None) as stream:
        while block := stream.read(PIECE_BYTES):
            yield block


class _Tap(io.RawIOBase):
    """A source whose blocks are shown to an observer on their way; `read1` hands on a typed line at once."""

    def __init__(self, source: Source, observe: Observer | None) -> None:
        self._source, self._observe = source, observe

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        block = self._source.read1(len(buffer))
        buffer[: len(block)] = block
        if self._observe is not None:
            self._observe(block)
        return len(block)


class _Lines:
    """Lines as a source of bytes."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines, self._rest = lines, b""

    def read1(self, size: int, /) -> bytes:
        if not self._rest:
            self._rest = b"".join(f"{line}\n".encode() for line in islice(self._lines, 1))
        block, self._rest = self._rest[:size], self._rest[size:]
        return block


@contextmanager
def _open(path: str | Path, observe: Observer | None) -> Iterator[BinaryIO]:
    place = place_of(path)
    if not place:
        raise InputError('""', "a file without a name", "give a name; - reads standard input")
    try:
        source = _source(path)
        try:
            text = decompressed(source, place)
            if isinstance(path, Rewritten):
                own = io.BufferedReader(_Tap(text, None), PIECE_BYTES)
                text = _Lines(path.rewrite(_pieces(own, place, may_be_empty=True)))
            with io.BufferedReader(_Tap(text, observe), PIECE_BYTES) as stream:
                yield stream
        finally:
            if str(path) != STANDARD_INPUT:
                source.close()
    except FileNotFoundError:
        raise InputError(place, "no such file", "check the name; - reads standard input") from None
    except IsADirectoryError:
        raise InputError(place, "this is a folder", "name the files in it") from None
    except PermissionError:
        raise InputError(place, "no permission to read it", "change its permissions, e.g. chmod u+r") from None
    except OSError as error:
        if str(path) == STANDARD_INPUT and error.errno == errno.EBADF:
            raise InputError(place, "is closed", "give a text through a pipe, or name a file") from None
        raise InputError(place, f"cannot be read ({error.strerror or error})") from None


def _source(path: str | Path) -> io.BufferedReader:
    return cast(io.BufferedReader, sys.stdin.buffer if str(path) == STANDARD_INPUT else Path(path).open("rb"))


def _without_byte_order_mark(first: bytes, place: str) -> bytes:
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{place}:1", "this is UTF-16, not UTF-8", "convert it, e.g. iconv -f utf-16 -t utf-8")
    return first.removeprefix(codecs.BOM_UTF8)


def _binary(place: str) -> InputError:
    return InputError(place, "not text (it holds a NUL byte)", "give plain text, compressed or not")


def _not_utf8(place: str, byte: int) -> InputError:
    remedy = "convert it, e.g. iconv -f latin1 -t utf-8"
    return InputError(place, f"not UTF-8 (byte 0x{byte:02x})", remedy)
