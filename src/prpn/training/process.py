"""What training asks of a process: memory that is needed again is kept, and numbers too small to matter are zero.

glibc maps large blocks anew and trims its heap when much of it is free, so that every step pays for pages being cleared
again. Without thresholds blocks of any size, with older versions up to 32 MiB, come from a heap that is not trimmed.
Large ones leave holes there, which the next steps fill: a larger peak, reached in some steps, for time in all others.

Weights that no gradient reaches, such as those of a distance that nothing reads, shrink by weight decay until they are
denormal, below 1.2e-38, where a processor takes far longer over each product. While a model trains they count as zero.
"""

from __future__ import annotations

import ctypes
import gc
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import torch

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
def denormals_are_zero() -> Iterator[None]:
    """In this thread and in those that start meanwhile, so it should begin before torch starts any."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


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
