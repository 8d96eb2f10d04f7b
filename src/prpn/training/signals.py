"""Stopping a run: a request that the step under way is finished and saved before the run ends."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_log = logging.getLogger(__name__)


class StopRequest:
    """Whether somebody wants a run to stop, and whether the run is where it would notice."""

    def __init__(self) -> None:
        self.made = self.heeded = False

    def make(self) -> None:
        """Ask it to stop; a KeyboardInterrupt where nobody would notice, or was asked before."""
        if self.made or not self.heeded:
            raise KeyboardInterrupt
        self.made = True
        _log.warning("stopping after this step, once everything is saved; again to stop at once")

    @contextmanager
    def heeding(self) -> Iterator[None]:
        """Within the block the request is looked at after every step."""
        self.heeded = True
        try:
            yield
        finally:
            self.heeded = False


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Take SIGINT and SIGTERM as requests while a run heeds them."""
    request = StopRequest()

    def note(_: int, __: object) -> None:
        request.make()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
