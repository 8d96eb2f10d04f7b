"""One run at a time in a model folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from prpn.errors import InputError
from prpn.models.files import LOCK

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

_OPENING = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""A file of this name, not one that a link leads to; nobody is waited for where it is a pipe."""
ATTEMPTS, PAUSE = 5, 0.1


def refuse_running(folder: Path) -> None:
    """Notice another run before long work; `only_run` has the last word."""
    if (folder / LOCK).exists():
        with only_run(folder):
            pass


@contextmanager
def only_run(folder: Path) -> Iterator[Callable[[], None]]:
    """Keep other runs out of the folder until the block, or the process, ends, where there are locks.

    Gives a function that refuses to go on once the folder is not there any more, or is another one.
    """
    with _held(folder) as require_here:
        if fcntl is None:
            yield require_here
            return
        path = folder / LOCK
        file = _taken(path)
        if file is None:
            raise InputError(str(folder), "another run is writing here", "wait for its end, or choose another --out")
        with file:
            try:
                yield require_here
            finally:
                if _is_at(path, file):  # else it is another run's
                    path.unlink(missing_ok=True)
                    with suppress(OSError):  # it is not empty
                        path.parent.rmdir()


@contextmanager
def _held(folder: Path) -> Iterator[Callable[[], None]]:
    """Keep the folder open, so that no other can be taken for it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # not on every system
        yield lambda: None
        return

    def require_here() -> None:
        try:
            here = os.path.samestat(os.fstat(descriptor), folder.stat())
        except OSError:
            here = False
        if not here:
            cause = "was removed, renamed or replaced while a run wrote into it"
            raise InputError(str(folder), cause, "what was not saved elsewhere is lost: begin again")

    try:
        yield require_here
    finally:
        os.close(descriptor)


def _taken(path: Path) -> IO[bytes] | None:
    """The locked file; None if somebody has it, and not just for a moment."""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE)
        path.parent.mkdir(exist_ok=True)
        file = os.fdopen(os.open(path, _OPENING, 0o666), "ab")
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
    except OSError:
        return False
