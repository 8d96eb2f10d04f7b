"""Fast twins of hot paths: the same results as model/ and parsing/, chosen automatically, never required.

PRPN_KERNELS   what runs
(not set)      the native core where there is one, else `off`; in bf16 while a model learns on a processor that
               multiplies bf16 faster, in fp32 otherwise
fp32, bf16     the native core; products in that type, everything else in fp32
off            PyTorch and numpy alone, with hand-written backward passes
autograd       PyTorch as written in model/, for comparison

Nothing here imports torch; the modules that need it do.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal, cast, get_args

from prpn.errors import ConfigError
from prpn.kernels import native

if TYPE_CHECKING:
    from torch import Tensor

Kernels = Literal["autograd", "off", "fp32", "bf16"]
_CHOICES = get_args(Kernels)

_learning: ContextVar[bool] = ContextVar("learning", default=False)
_chosen: ContextVar[Kernels | None] = ContextVar("chosen", default=None)
"""Of each thread for itself."""


@contextmanager
def learning() -> Iterator[None]:
    """While a model learns, where rounded factors do no harm that seeds would not do (docs/speed.md)."""
    before = _learning.set(True)
    try:
        yield
    finally:
        _learning.reset(before)


@contextmanager
def as_forwards(choice: Kernels) -> Iterator[None]:
    """In a backward pass: what was in use in its forward pass, whichever thread autograd runs it in."""
    before = _chosen.set(choice)
    try:
        yield
    finally:
        _chosen.reset(before)


def in_use() -> Kernels:
    """Which implementation runs."""
    if (chosen := _chosen.get()) is not None:
        return chosen
    choice = os.environ.get("PRPN_KERNELS") or ("bf16" if _learning.get() and native.multiplies_bf16() else "fp32")
    if choice not in _CHOICES:
        raise ConfigError(f"PRPN_KERNELS={choice}: choose one of {', '.join(_CHOICES)}")
    if choice in ("fp32", "bf16") and native.library() is None:
        _complain()
        return "off"
    return cast(Kernels, choice)


def native_reads(tensor: Tensor) -> bool:
    """Whether the native core is in use and can work on a tensor: it knows fp32 on the CPU."""
    return in_use() in ("fp32", "bf16") and tensor.device.type == "cpu" and str(tensor.dtype) == "torch.float32"


def described() -> str:
    """What runs, for a reader: `native fp32 (avx512)`, `PyTorch`."""
    here, names = in_use(), {"autograd": "PyTorch with autograd", "off": "PyTorch"}
    with learning():
        note = "" if in_use() == here else f", learns in {in_use()}"
    return names.get(here, f"native {here} ({native.instruction_set()}{note})")


_complaint = threading.Lock()
"""Taken for good by the first thread that complains: it is said once, and nobody ever waits for it."""


def _complain() -> None:
    if _complaint.acquire(blocking=False):
        logging.getLogger("prpn").warning("%s; PyTorch and numpy do the work, more slowly", native.complaint())
