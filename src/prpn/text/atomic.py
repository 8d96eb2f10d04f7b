"""Writing a file so that its name never stands for half a file.

The bytes go to a temporary file in the same folder, which takes the final name in one step once all are on disk. A
process that dies before leaves only the temporary file, which nothing ever reads.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from prpn.errors import InputError


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write to; it becomes `path` when the block ends, and vanishes when the block fails."""
    # Not tempfile: its files are private to the user, while a model folder may be meant for others.
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def output(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write to as the user named it: a device or a pipe as it is, any other `replacing` it."""
    try:
        with _straight(path) or replacing(path.resolve()) as file:
            yield file
    except BrokenPipeError:  # nobody reads it any more
        raise
    except OSError as error:
        raise InputError(str(path), f"cannot be written ({error.strerror})", "give --out another name") from None


def _straight(path: Path) -> BinaryIO | None:
    """The file, opened, if its name must stay what it is: a renamed file would take the place of /dev/null."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(mode) and path.parent != Path("/dev"):
        return None
    return path.open("wb")  # of a folder: an error
