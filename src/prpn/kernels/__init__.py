"""Fast twins of hot paths: the same results as model/ and parsing/, chosen automatically, never required.

PRPN_KERNELS   what runs
(not set)      the native core in fp32 where there is one, else `off`
fp32, bf16     the native core; products in that type, everything else in fp32
off            PyTorch and numpy alone, with hand-written backward passes
autograd       PyTorch as written in model/, for comparison

Nothing here imports torch; the modules that need it do.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Literal, cast, get_args

from prpn.errors import ConfigError
from prpn.kernels import native

if TYPE_CHECKING:
    from torch import Tensor

Kernels = Literal["autograd", "off", "fp32", "bf16"]


def in_use() -> Kernels:
    """Which implementation runs."""
    choice = os.environ.get("PRPN_KERNELS") or "fp32"
    if choice not in get_args(Kernels):
        raise ConfigError(f"PRPN_KERNELS={choice}: choose one of {', '.join(get_args(Kernels))}")
    if choice in ("fp32", "bf16") and native.library() is None:
        _complain()
        return "off"
    return cast(Kernels, choice)


def native_reads(tensor: Tensor) -> bool:
    """Whether the native core is in use and can work on a tensor: it knows fp32 on the CPU."""
    return in_use() in ("fp32", "bf16") and tensor.device.type == "cpu" and str(tensor.dtype) == "torch.float32"


def described() -> str:
    """What runs, for a reader: `native fp32 (avx512)`, `PyTorch`."""
    names = {"autograd": "PyTorch with autograd", "off": "PyTorch"}
    return names.get(in_use(), f"native {in_use()} ({native.instruction_set()})")


@cache
def _complain() -> None:
    print(f"prpn: {native.complaint()}; PyTorch and numpy do the work, more slowly", file=sys.stderr)
