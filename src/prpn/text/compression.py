"""Compressed bytes, recognised by how they begin and decompressed as they come, in bounded memory.

    gzip, xz, bzip2, zstd     one after the other in a file is one text, as for their own commands

A name says nothing: text called x.gz is text, and a pipe may be compressed. zstd needs Python 3.14
or the package `zstandard`; the others come with Python.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any, Protocol

from prpn.errors import InputError

BLOCK_BYTES = 1 << 16
ZSTD_BYTES = 1 << 8
"""Given to `zstandard` at once: it cannot be told how much to give back, which is 8 MB at most."""

_BEGINNINGS = {
    "gzip": (b"\x1f\x8b\x08",),
    "xz": (b"\xfd7zXZ\x00",),
    "bzip2": tuple(b"BZh%d%b" % (level, mark) for level in range(1, 10) for mark in (b"1AY&SY", b"\x17rE8P\x90")),
    "zstd": (b"\x28\xb5\x2f\xfd", *(bytes([first]) + b"\x2a\x4d\x18" for first in range(0x50, 0x60))),
}


class Source(Protocol):
    """What bytes are read from: `read1` gives what there is, and nothing only at the end."""

    def read1(self, size: int, /) -> bytes:
        """At most so many bytes."""


class _Decompressor(Protocol):
    """What bz2, lzma and Python's own zstd give."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = ...) -> bytes: ...


def decompressed(source: Source, place: str) -> Source:
    """The source itself, or what comes out of it if it is compressed."""
    begin = source.read1(BLOCK_BYTES)
    while begin and _may_become_compressed(begin) and (more := source.read1(BLOCK_BYTES)):
        begin += more
    whole, kind = _Begun(begin, source), kind_of(begin)
    return whole if kind is None else _Decompressed(whole, place, kind)


def kind_of(begin: bytes) -> str | None:
    """How bytes that begin so are compressed."""
    return next((kind for kind, beginnings in _BEGINNINGS.items() if begin.startswith(beginnings)), None)


def _may_become_compressed(begin: bytes) -> bool:
    """Whether more bytes are needed to tell: a typed line is not to be waited for."""
    return any(each.startswith(begin) and each != begin for kind in _BEGINNINGS.values() for each in kind)


class _Begun:
    """A source whose first bytes were read already."""

    def __init__(self, begin: bytes, source: Source) -> None:
        self._begin, self._source = begin, source

    def read1(self, size: int, /) -> bytes:
        if self._begin:
            block, self._begin = self._begin[:size], self._begin[size:]
            return block
        return self._source.read1(size)


class _Decompressed:
    def __init__(self, source: Source, place: str, kind: str) -> None:
        self._source, self._place, self._kind = source, place, kind
        self._new: Callable[[], _Decompressor] = _zstd(place) if kind == "zstd" else _NEW[kind]
        self._decompressor = self._new()

    def read1(self, size: int, /) -> bytes:
        while True:
            now, data = self._decompressor, b""
            if now.eof:
                data = now.unused_data.lstrip(b"\0")  # zeros fill up what is written in blocks
                while not data and (more := self._compressed()):
                    data = more.lstrip(b"\0")
                if not data:
                    return b""
                now = self._decompressor = self._new()
            elif now.needs_input and not (data := self._compressed()):
                raise self._broken("it is cut short")
            try:
                block = now.decompress(data, size)
            except Exception as error:  # each has its own, bz2 a plain OSError
                raise self._broken(str(error)) from None
            if block:
                return block

    def _compressed(self) -> bytes:
        return self._source.read1(BLOCK_BYTES)

    def _broken(self, cause: str) -> InputError:
        return InputError(self._place, f"broken {self._kind} data ({cause})", "compress or copy it again")


class _Gzip:
    """zlib with the manners of the others."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    def decompress(self, data: bytes, max_length: int = 0) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)


class _Zstandard:
    """The package `zstandard` with the manners of the others."""

    def __init__(self, package: Any) -> None:
        self._zstd = package.ZstdDecompressor().decompressobj()
        self._waiting, self._ready = b"", b""

    @property
    def eof(self) -> bool:
        return self._zstd.eof and not self._ready

    @property
    def unused_data(self) -> bytes:
        return self._zstd.unused_data + self._waiting

    @property
    def needs_input(self) -> bool:
        return not self._waiting and not self._ready

    def decompress(self, data: bytes, max_length: int = 0) -> bytes:
        self._waiting += data
        if not self._ready:
            some, self._waiting = self._waiting[:ZSTD_BYTES], self._waiting[ZSTD_BYTES:]
            self._ready = self._zstd.decompress(some)
        block, self._ready = self._ready[:max_length], self._ready[max_length:]
        return block


_NEW: dict[str, Callable[[], _Decompressor]] = {
    "gzip": _Gzip,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ),
    "bzip2": bz2.BZ2Decompressor,
}


def _zstd(place: str) -> Callable[[], _Decompressor]:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore] # Python 3.14

        return zstd.ZstdDecompressor  # type: ignore[no-any-return, unused-ignore]
    except ImportError:
        pass
    try:
        import zstandard
    except ImportError:
        raise InputError(place, "compressed by zstd, which needs a package", "pip install zstandard") from None
    return lambda: _Zstandard(zstandard)
