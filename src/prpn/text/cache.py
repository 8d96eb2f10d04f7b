"""Where encoded text is kept between runs, and how it gets there in a stream.

Arrays are .npy files, so that `np.load(…, mmap_mode="r")` maps them and a corpus larger than memory can be used. The
length stands in a .npy header, before the values; `ArrayWriter` therefore writes the header twice, first as a
placeholder and again, in the same place, once the values are counted.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from prpn.errors import InputError
from prpn.text.atomic import replacing
from prpn.text.files import STANDARD_INPUT, read_pieces


def default_cache() -> Path:
    """$PRPN_CACHE, else $XDG_CACHE_HOME/prpn, else ~/.cache/prpn."""
    if own := os.environ.get("PRPN_CACHE"):
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "prpn"


@contextmanager
def writable(cache: Path) -> Iterator[None]:
    """Make the cache folder if needed; report a failure to write there as one."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        remedy = "set PRPN_CACHE to a folder with room"
        raise InputError(str(cache), f"cannot write the cache ({error.strerror or error})", remedy) from None


def is_read_once(path: str | Path) -> bool:
    """Whether what is read from it is gone: standard input, a pipe, a terminal."""
    if str(path) == STANDARD_INPUT:
        return True
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return False  # whoever reads it will say what is wrong
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


@contextmanager
def rereadable(paths: Sequence[str | Path], cache: Path) -> Iterator[list[str | Path]]:
    """Make every input readable more than once, by copying standard input and pipes to the cache.

    The copies are checked while they are made, so that messages name the input itself, and go when the block ends.
    """
    with ExitStack() as copies:
        yield [copies.enter_context(_copy(path, cache)) if is_read_once(path) else path for path in paths]


class ArrayWriter:
    """A one-dimensional .npy file, written bit by bit."""

    def __init__(self, file: BinaryIO, dtype: DTypeLike) -> None:
        self._file, self._dtype, self._length = file, np.dtype(dtype), 0
        self._write_header()

    def append(self, values: NDArray[Any]) -> None:
        """Add values of the array's own type."""
        self._file.write(values.astype(self._dtype, copy=False).tobytes())
        self._length += len(values)

    def finish(self) -> None:
        """Write the true length into the header."""
        self._file.seek(0)
        self._write_header()

    def _write_header(self) -> None:
        # numpy pads headers so that the first axis can grow in place.
        header = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": (self._length,)}
        np.lib.format.write_array_header_1_0(self._file, header)


@contextmanager
def _copy(path: str | Path, cache: Path) -> Iterator[Path]:
    copy = cache / f"input-{os.getpid()}-{os.urandom(4).hex()}"
    with writable(cache), replacing(copy) as file:
        for _ in read_pieces(path, observe=file.write):
            pass
    try:
        yield copy
    finally:
        copy.unlink(missing_ok=True)
