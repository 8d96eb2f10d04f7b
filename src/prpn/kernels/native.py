"""The native core, loaded: C++ behind a C interface on raw pointers, built once for each instruction set.

    _native_amx   _native_avx512bf16   _native_avx512   _native_avx2

The first that was built and that this machine can run is taken. A library of its own, `_native_machine`, which any
processor runs, is asked about that before another is loaded. A core whose structs are not those of `structs.py` is
refused.

`PRPN_INSTRUCTIONS=avx2` leaves out those before it: to compare, or on processors that slow down with wide vectors.

Nothing of it is required. Without it `library()` is None, `complaint()` says why in one line, and PyTorch and numpy do
the work.

Every function returns a status; one that says that something went wrong is raised as an error of Python.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from prpn.errors import ConfigError
from prpn.kernels.structs import MIRRORED, Pointer

_SIZE, _NUMBER, _SEED, _FLAG, _TEXT = ctypes.c_int64, ctypes.c_float, ctypes.c_uint64, ctypes.c_int32, ctypes.c_char_p
_SIGNATURES: dict[str, tuple[type, ...]] = {
    "prpn_dropout": (Pointer, _SIZE, _SIZE, _SIZE, _SEED, _NUMBER, Pointer, _SIZE),
    "prpn_decoding": (*[Pointer] * 4, *[_SIZE] * 4, _FLAG, *[Pointer] * 4, _SIZE),
    "prpn_product": (*(Pointer, _SIZE, _SIZE) * 2, *[_SIZE] * 3, _FLAG, Pointer, Pointer, _SIZE, _SIZE),
    "prpn_batch_norm": (Pointer,),
    "prpn_convolution_forward": (Pointer,),
    "prpn_convolution_backward": (Pointer,),
    "prpn_adam": (Pointer, _SIZE, Pointer, _SIZE),
    "prpn_stick_forward": (Pointer, _SIZE, _SIZE, Pointer, _SIZE),
    "prpn_stick_backward": (*[Pointer] * 3, _SIZE, _SIZE, Pointer, _SIZE),
    "prpn_predicting_forward": (Pointer,),
    "prpn_predicting_backward": (Pointer,),
    "prpn_reading_forward": (Pointer,),
    "prpn_reading_backward": (Pointer,),
    "prpn_parsing_rows": (Pointer, _SIZE, Pointer, _SIZE, _SIZE, Pointer, _SIZE, Pointer, _SIZE),
    "prpn_parsing_scores": (
        Pointer, _SIZE, Pointer, Pointer, _NUMBER, *[_SIZE] * 3, _FLAG, _FLAG, Pointer, _SIZE, _SIZE, Pointer,
        *[_SIZE] * 3, Pointer, _SIZE,
    ),
    "prpn_parsing_spans": (Pointer, _SIZE, Pointer, _SIZE, _FLAG, Pointer, Pointer, _SIZE, _SIZE),
    "prpn_text_new": (_FLAG, _FLAG, _FLAG, _SIZE, _SIZE, Pointer),
    "prpn_text_delete": (Pointer,),
    "prpn_text_plain_words": (Pointer, _TEXT, _SIZE, Pointer, _SIZE),
    "prpn_text_read": (Pointer, _TEXT, _SIZE, _SIZE, Pointer),
    "prpn_text_unknown": (Pointer, Pointer, Pointer),
    "prpn_text_define": (Pointer, _TEXT, _SIZE, Pointer, Pointer, _SIZE, Pointer, _SIZE),
    "prpn_text_words": (Pointer, _SIZE, Pointer, Pointer, Pointer),
    "prpn_text_offsets": (Pointer, Pointer, Pointer),
    "prpn_text_write": (Pointer, Pointer, Pointer, _SIZE, _FLAG, _SIZE, Pointer),
    "prpn_text_part": (Pointer, _SIZE, Pointer, Pointer),
    **{f"prpn_{name}_layout": (Pointer, Pointer) for name in MIRRORED},
}  # fmt: skip
"""Arguments of all functions of the core."""
_MACHINE_SIGNATURES: dict[str, tuple[type, ...]] = {
    "prpn_machine_runs": (_TEXT, Pointer),
    "prpn_machine_is_intels": (Pointer,),
}
"""The same of the library that knows the machine."""
_ERRORS = {1: MemoryError, 2: ValueError, 3: RuntimeError, 4: IndexError}
"""What is raised for each status but 0, as native/api.h numbers them."""

INSTRUCTION_SETS = ("amx", "avx512bf16", "avx512", "avx2")
"""Fastest first."""


def library() -> ctypes.CDLL | None:
    """The fastest library that runs here, or None."""
    return _find()[1]


def required_library() -> ctypes.CDLL:
    """The library, where it is known to be there."""
    found = library()
    if found is None:
        raise RuntimeError(complaint())
    return found


def threads() -> int:
    """Threads that a native function may use beside PyTorch.

    A process that was forked from one that had some has none of them, and OpenMP would wait for them for ever.
    """
    import torch  # parsing, which loads the same library, does without

    return 1 if _forked else torch.get_num_threads()


_forked = False


def _remember_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_remember_fork)


def instruction_set() -> str | None:
    """The instruction set of `library()`."""
    return _find()[0]


def multiplies_bf16() -> bool:
    """Whether the processor at hand multiplies bf16 faster than fp32, and the library knows how."""
    return instruction_set() in ("amx", "avx512bf16")


@cache
def multiplies_fp32() -> bool:
    """Whether the library multiplies large fp32 matrices faster than PyTorch, which calls Intel's library, does."""
    return not _machine_says("prpn_machine_is_intels")


def complaint() -> str:
    """Why there is no native core, in one line; empty if there is one."""
    return _find()[2]


def runs_here(name: str) -> bool:
    """Whether this machine runs an instruction set; nothing that was compiled for it is asked."""
    return _machine_says("prpn_machine_runs", name.encode())


@cache
def _find() -> tuple[str | None, ctypes.CDLL | None, str]:
    built = [(name, path) for name in _allowed() if (path := _path(name)) is not None]
    if not built:
        return None, None, "no native core was built (is GCC, a C++ compiler, installed?)"
    causes = []
    for name, path in built:
        try:
            if runs_here(name):
                found = _loaded(path, _SIGNATURES)
                if not (wrong := _wrongly_mirrored(found)):
                    return name, found, ""
                causes.append(f"{path.name} has another {' and another '.join(wrong)} than Python; install prpn again")
            else:
                causes.append("needs other instructions than this processor has")
        except (OSError, AttributeError) as error:
            causes.append(str(error).replace("\n", " "))
    return None, None, f"the native core does not load: {causes[-1]}"


def _machine_says(question: str, *arguments: Any) -> bool:
    path, answer = _path("machine"), _FLAG()
    if path is None:
        raise OSError("_native_machine, which knows the processor, was not built")
    getattr(_loaded(path, _MACHINE_SIGNATURES), question)(*arguments, ctypes.byref(answer))
    return bool(answer.value)


def _loaded(path: Path, signatures: Mapping[str, tuple[type, ...]]) -> ctypes.CDLL:
    found = ctypes.CDLL(str(path))
    found.prpn_message.argtypes, found.prpn_message.restype = (), _TEXT

    def raise_unless_done(status: int, function: Any, arguments: tuple[Any, ...]) -> int:
        if status != 0:
            raise _ERRORS[status](f"the native core: {found.prpn_message().decode(errors='replace')}")
        return status

    for name, arguments in signatures.items():
        function = getattr(found, name)
        function.argtypes, function.restype, function.errcheck = arguments, _FLAG, raise_unless_done
    return found


def _wrongly_mirrored(found: ctypes.CDLL) -> list[str]:
    """The structs that Python and a library do not lay out alike."""
    wrong = []
    for name, mirror in MIRRORED.items():
        size, last = _SIZE(), _SIZE()
        getattr(found, f"prpn_{name}_layout")(ctypes.byref(size), ctypes.byref(last))
        theirs = size.value, last.value
        if theirs != (ctypes.sizeof(mirror), getattr(mirror, mirror._fields_[-1][0]).offset):
            wrong.append(f"struct {mirror.__name__}")
    return wrong


def _allowed() -> tuple[str, ...]:
    most = os.environ.get("PRPN_INSTRUCTIONS") or INSTRUCTION_SETS[0]
    if most not in INSTRUCTION_SETS:
        raise ConfigError(f"PRPN_INSTRUCTIONS={most}: choose one of {', '.join(INSTRUCTION_SETS)}")
    return INSTRUCTION_SETS[INSTRUCTION_SETS.index(most) :]


def _path(name: str) -> Path | None:
    folder = Path(__file__).parent
    paths = (folder / f"_native_{name}{suffix}" for suffix in EXTENSION_SUFFIXES)
    return next((path for path in paths if path.is_file()), None)
