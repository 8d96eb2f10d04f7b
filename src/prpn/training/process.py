"""Where a run takes place: in a thread of its own, so that it leaves the process as it was.

Weights that no gradient reaches, such as those of a distance that nothing reads, shrink by weight decay until they are
denormal, below 1.2e-38, where a processor takes far longer over each product. While a model trains they count as zero.
That is a setting of a thread, which those that it starts inherit. A run has a thread of its own, with workers of its
own, so that whoever called keeps rounding as before.

A process that does nothing but train can be told more: its memory, its garbage collector and its signals are the run's.
glibc maps large blocks anew and trims its heap when much of it is free, so that every step pays for pages being cleared
again. Without thresholds blocks of any size, with older versions up to 32 MiB, come from a heap that is not trimmed.
Large ones leave holes there, which the next steps fill: a larger peak, reached in some steps, for time in all others.
"""

from __future__ import annotations

import ctypes
import gc
import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from prpn.training.signals import StopRequest, stop_requests

Result = TypeVar("Result")

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of malloc.h
_NO_LIMIT, _LARGEST_BEFORE = -1, 2**25  # of blocks on the heap; older versions of glibc refuse more


def keep_freed_memory() -> bool:
    """Let the C library keep what is freed, in this process; false where it is not glibc."""
    library = _glibc()
    return library is not None and bool(
        any(library.mallopt(_MMAP_THRESHOLD, size) for size in (_NO_LIMIT, _LARGEST_BEFORE))
        and library.mallopt(_TRIM_THRESHOLD, _NO_LIMIT)
    )


def return_freed_memory() -> None:
    """Hand back what was kept."""
    if (library := _glibc()) is not None:
        library.malloc_trim(0)


@contextmanager
def own_process() -> Iterator[StopRequest]:
    """Let a process be a run's alone; SIGINT and SIGTERM become requests to stop. For commands, not for libraries."""
    keep_freed_memory()
    with stop_requests() as stop, nothing_collected_twice():
        yield stop


def in_own_thread(work: Callable[[], Result], stop: StopRequest) -> Result:
    """What `work` gives, done in a thread where denormal numbers are zero.

    An interrupt of the waiting thread asks for a stop, waits for it and goes on its way; a second one does not wait.
    """
    outcome: list[Result] = []
    error: list[BaseException] = []
    ended = threading.Event()  # an interrupted `join` may take a thread for ended that is not

    def run() -> None:
        import torch

        try:
            torch.set_flush_denormal(True)
            outcome.append(work())
        except BaseException as caught:
            error.append(caught)
        finally:
            ended.set()

    thread = threading.Thread(target=run, name="prpn training", daemon=True)  # a second interrupt ends the process
    thread.start()
    interrupt: KeyboardInterrupt | None = None
    while not ended.is_set():
        try:
            ended.wait()
        except KeyboardInterrupt as caught:
            stop.make()
            interrupt = caught
    thread.join()
    if interrupt is not None and not outcome:
        raise KeyboardInterrupt(str(error[0])) from error[0]
    if error:
        raise error[0]
    return outcome[0]


@contextmanager
def random_numbers_apart(seed: int) -> Iterator[None]:
    """Draw from a seed of one's own, and leave PyTorch's generators as they were."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


@contextmanager
def nothing_collected_twice() -> Iterator[None]:
    """Let Python's garbage collector leave out what is there already, mostly modules, or it walks them at each step."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _glibc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None
