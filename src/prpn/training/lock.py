"""One run at a time in a model folder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from prpn.errors import InputError

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

LOCK = "training/lock"
ATTEMPTS, PAUSE = 5, 0.1


def refuse_running(folder: Path) -> None:
    """Notice another run before long work; `only_run` has the last word."""
    if (folder / LOCK).exists():
        with only_run(folder):
            pass


@contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Keep other runs out of the folder until the block, or the process, ends; do nothing where there are no locks."""
    if fcntl is None:
        yield
        return
    path = folder / LOCK
    file = _taken(path)
    if file is None:
        raise InputError(str(folder), "another run is writing here", "wait for its end, or choose another --out")
    with file:
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # it is not empty
                path.parent.rmdir()


def _taken(path: Path) -> IO[bytes] | None:
    """The locked file; None if somebody has it, and not just for a moment."""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE)
        path.parent.mkdir(exist_ok=True)
        file = path.open("ab")
        if _lock(file) and _is_at(path, file):
            return file
        file.close()
    return None


def _lock(file: IO[bytes]) -> bool:
    """Whether nobody else has the file."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _is_at(path: Path, file: IO[bytes]) -> bool:
    """Whether the file still has its name: the run that had it before takes it away."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
