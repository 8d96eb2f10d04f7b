"""Where encoded text is kept between runs, and how it gets there in a stream.

Arrays are .npy files, so that `np.load(…, mmap_mode="r")` maps them and a corpus larger than memory can be used. The
length stands in a .npy header, before the values; `ArrayWriter` therefore writes the header twice, first as a
placeholder and again, in the same place, once the values are counted. Beside the arrays stands what they were when they
were written, and `read_array` compares: a flipped bit is no other text.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from prpn.errors import InputError
from prpn.text.atomic import replacing
from prpn.text.files import STANDARD_INPUT, read_pieces

VALUES_AT_ONCE = 1 << 18


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


class DamagedError(Exception):
    """A file of the cache is not what was written."""


class ArrayWriter:
    """A one-dimensional .npy file, written bit by bit."""

    def __init__(self, file: BinaryIO, dtype: DTypeLike) -> None:
        self._file, self._dtype, self._length, self._digest = file, np.dtype(dtype), 0, digest_of()
        self._write_header()

    def append(self, values: NDArray[Any]) -> None:
        """Add values of the array's own type."""
        content = values.astype(self._dtype, copy=False).tobytes()
        self._file.write(content)
        self._digest.update(content)
        self._length += len(values)

    def finish(self) -> dict[str, Any]:
        """Write the true length into the header; what `read_array` compares with."""
        self._file.seek(0)
        self._write_header()
        return {"type": self._dtype.str, "length": self._length, "digest": self._digest.hexdigest()}

    def _write_header(self) -> None:
        # numpy pads headers so that the first axis can grow in place.
        header = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": (self._length,)}
        np.lib.format.write_array_header_1_0(self._file, header)


def digest_of(content: bytes = b"") -> hashlib.blake2b:
    """What tells a file of the cache from a damaged one."""
    return hashlib.blake2b(content, digest_size=16)


def read_file(path: Path) -> bytes:
    """A file of the cache; nothing else that has its name is opened, for a pipe would be waited for."""
    _require_file(path)
    return path.read_bytes()


def read_array(path: Path, written: Mapping[str, Any], least: int, most: int) -> NDArray[Any]:
    """Map an array that is what was written, all its values from `least` to `most`; each is looked at once."""
    _require_file(path)
    try:
        array: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    except (ValueError, TypeError, OverflowError, OSError) as error:
        raise DamagedError(f"{path.name}: {error}") from None
    if (array.dtype.str, array.shape) != (written["type"], (written["length"],)):
        raise DamagedError(f"{path.name}: {array.shape} of {array.dtype}")
    digest = digest_of()
    for begin in range(0, len(array), VALUES_AT_ONCE):
        values = array[begin : begin + VALUES_AT_ONCE]
        digest.update(values.data)
        if values.min() < least or values.max() > most:
            raise DamagedError(f"{path.name}: values out of range")
    if digest.hexdigest() != written["digest"]:
        raise DamagedError(f"{path.name}: other bytes than were written")
    return array


def make_way(path: Path) -> None:
    """Take away a folder where a file is to be written; anything else is replaced."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)


def _require_file(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        raise DamagedError(f"{path.name} is gone") from None
    if not stat.S_ISREG(mode):
        raise DamagedError(f"{path.name} is no plain file")


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
