"""Commands and functions that are measured in a process of their own."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parent.parent


def run_python(
    words: Sequence[str], *, text: str = "", out: IO[str] | None = None, environment: Mapping[str, str] | None = None
) -> tuple[str, str]:
    """Run Python with these words and `text` to read; what it wrote to standard output (unless to `out`) and error."""
    done = subprocess.run(
        [sys.executable, *words],
        input=text,
        stdout=out or subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
    )
    if done.returncode != 0:
        sys.exit(f"python {' '.join(words)}\nfailed:\n{done.stderr}")
    return done.stdout or "", done.stderr


class Worker:
    """A function in a process of its own, made there once and called from here."""

    def __init__(self, make: Callable[..., Callable[[], float]], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would take over the allocator's settings
        self._pipe, theirs = context.Pipe()
        context.Process(target=_serve, args=(theirs, make, arguments), daemon=True).start()
        theirs.close()

    def __call__(self) -> float:
        """What the function returns."""
        self._pipe.send(None)
        return float(self._pipe.recv())


def _serve(pipe: Connection, make: Callable[..., Callable[[], float]], arguments: Sequence[Any]) -> None:
    function = make(*arguments)
    while True:
        try:
            pipe.recv()
        except EOFError:  # nobody will ask again
            return
        pipe.send(function())
