"""One run at a time in a model folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from prpn.errors import InputError

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

LOCK = "training/lock"


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
    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as file:
        if not _lock(file) or not _is_at(path, file):
            raise InputError(str(folder), "another run is writing here", "wait for its end, or choose another --out")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


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
