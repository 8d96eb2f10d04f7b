"""Ctrl-C and termination as a request: the step under way is finished and saved before the run ends."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stop_requests() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM instead of dying by them; a second one kills as usual."""
    received: list[int] = []

    def note(number: int, _: object) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)
        print("\nstopping after this step, once everything is saved; again to stop at once", file=sys.stderr)

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: whoever called has the signals
        yield received
        return
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
