"""The native core, loaded: C++ behind a C interface on raw pointers, built once for each instruction set.

    _native_amx   _native_avx512   _native_avx2        the first that was built and that this machine can run

Nothing of it is required. Without it `library()` is None, `complaint()` says why in one line, and PyTorch and numpy do
the work.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

INSTRUCTION_SETS = ("amx", "avx512", "avx2")
"""Fastest first."""


@cache
def library() -> ctypes.CDLL | None:
    """The fastest library that runs here, or None."""
    return _find()[1]


def instruction_set() -> str | None:
    """The instruction set of `library()`."""
    return _find()[0]


def complaint() -> str:
    """Why there is no native core, in one line; empty if there is one."""
    return _find()[2]


@cache
def _find() -> tuple[str | None, ctypes.CDLL | None, str]:
    built = [path for name in INSTRUCTION_SETS if (path := _path(name)) is not None]
    if not built:
        return None, None, "no native core was built (is a C++ compiler installed?)"
    causes = []
    for path in built:
        try:
            found = ctypes.CDLL(str(path))
            if found.prpn_runs_here():
                return path.name.split(".")[0].removeprefix("_native_"), found, ""
            causes.append("needs other instructions than this processor has")
        except (OSError, AttributeError) as error:
            causes.append(str(error).replace("\n", " "))
    return None, None, f"the native core does not load: {causes[-1]}"


def _path(name: str) -> Path | None:
    folder = Path(__file__).parent
    paths = (folder / f"_native_{name}{suffix}" for suffix in EXTENSION_SUFFIXES)
    return next((path for path in paths if path.is_file()), None)
