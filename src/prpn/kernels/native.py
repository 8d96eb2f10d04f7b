"""The native core, loaded: C++ behind a C interface on raw pointers, built once for each instruction set.

    _native_amx   _native_avx512bf16   _native_avx512   _native_avx2

The first that was built and that this machine can run is taken.

`PRPN_INSTRUCTIONS=avx2` leaves out those before it: to compare, or on processors that slow down with wide vectors.

Nothing of it is required. Without it `library()` is None, `complaint()` says why in one line, and PyTorch and numpy do
the work.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prpn.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

Pointer = ctypes.c_void_p

_SIZE, _NUMBER, _SEED, _FLAG, _TEXT = ctypes.c_int64, ctypes.c_float, ctypes.c_uint64, ctypes.c_int32, ctypes.c_char_p
_SIGNATURES: dict[str, tuple[type, ...]] = {
    "prpn_processor_is_intels": (),
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
    "prpn_parsing_rows": (Pointer, Pointer, _SIZE, _SIZE, Pointer, _SIZE, Pointer, _SIZE),
    "prpn_parsing_scores": (
        *[Pointer] * 3, _NUMBER, *[_SIZE] * 3, _FLAG, _FLAG, Pointer, _SIZE, Pointer, *[_SIZE] * 3, Pointer, _SIZE,
    ),
    "prpn_text_new": (_FLAG, _FLAG, _FLAG, _SIZE, _SIZE),
    "prpn_text_delete": (Pointer,),
    "prpn_text_plain_words": (Pointer, _TEXT, Pointer, _SIZE),
    "prpn_text_read": (Pointer, _TEXT, _SIZE, _SIZE),
    "prpn_text_unknown": (Pointer, Pointer),
    "prpn_text_define": (Pointer, _TEXT, _SIZE, Pointer, Pointer),
    "prpn_text_words": (Pointer, _SIZE, Pointer, Pointer),
    "prpn_text_write": (Pointer, Pointer, Pointer, _FLAG, _SIZE),
    "prpn_text_part": (Pointer, _SIZE, Pointer),
}  # fmt: skip
"""Arguments of all functions."""
_RESULTS = {
    "prpn_text_new": Pointer,
    "prpn_processor_is_intels": _FLAG,
    **dict.fromkeys((f"prpn_text_{name}" for name in ("read", "unknown", "words", "write", "part")), _SIZE),
}
"""What those return that return something."""

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


def address(tensor: Tensor | None) -> int | None:
    """Where the numbers of a tensor lie; the native core reads fp32, and int64 for token numbers, on the CPU."""
    if tensor is None:
        return None
    if tensor.device.type != "cpu" or not _readable(tensor.dtype):
        raise TypeError(f"the native core cannot read {tensor.dtype} on {tensor.device}")
    return tensor.data_ptr()


@cache
def _readable(dtype: object) -> bool:
    return str(dtype) in ("torch.float32", "torch.int64")


def evenly_spaced(x: Tensor) -> Tensor:
    """The same rows, every two neighbours equally far apart."""
    regular = all(x.stride(i) == x.stride(i + 1) * x.shape[i + 1] for i in range(x.dim() - 2) if x.shape[i] > 1)
    if regular and (x.stride(-1) == 1 or x.shape[-1] == 1):
        return x
    return x.new_empty(x.shape).copy_(x)  # what PyTorch calls contiguous may have any stride where there is one row


def threads() -> int:
    """Threads that a native function may use beside PyTorch."""
    import torch  # parsing, which loads the same library, does without

    return torch.get_num_threads()


class Arguments(ctypes.Structure):
    """The arguments of a function that takes many, as a struct."""

    def set(self, **fields: Any) -> None:
        """Set fields; of tensors, their addresses."""
        for name, value in fields.items():
            number = isinstance(value, int | float)
            setattr(self, name, value if number else address(value))


def instruction_set() -> str | None:
    """The instruction set of `library()`."""
    return _find()[0]


def multiplies_bf16() -> bool:
    """Whether the processor at hand multiplies bf16 faster than fp32, and the library knows how."""
    return instruction_set() in ("amx", "avx512bf16")


@cache
def multiplies_fp32() -> bool:
    """Whether the library multiplies large fp32 matrices faster than PyTorch, which calls Intel's library, does."""
    return not required_library().prpn_processor_is_intels()


def complaint() -> str:
    """Why there is no native core, in one line; empty if there is one."""
    return _find()[2]


@cache
def _find() -> tuple[str | None, ctypes.CDLL | None, str]:
    built = [path for name in _allowed() if (path := _path(name)) is not None]
    if not built:
        return None, None, "no native core was built (is GCC, a C++ compiler, installed?)"
    causes = []
    for path in built:
        try:
            found = ctypes.CDLL(str(path))
            if _runs_here(found):
                for name, arguments in _SIGNATURES.items():
                    function = getattr(found, name)
                    function.argtypes, function.restype = arguments, _RESULTS.get(name)
                return path.name.split(".")[0].removeprefix("_native_"), found, ""
            causes.append("needs other instructions than this processor has")
        except (OSError, AttributeError) as error:
            causes.append(str(error).replace("\n", " "))
    return None, None, f"the native core does not load: {causes[-1]}"


def _runs_here(found: ctypes.CDLL) -> bool:
    return bool(found.prpn_runs_here())


def _allowed() -> tuple[str, ...]:
    most = os.environ.get("PRPN_INSTRUCTIONS") or INSTRUCTION_SETS[0]
    if most not in INSTRUCTION_SETS:
        raise ConfigError(f"PRPN_INSTRUCTIONS={most}: choose one of {', '.join(INSTRUCTION_SETS)}")
    return INSTRUCTION_SETS[INSTRUCTION_SETS.index(most) :]


def _path(name: str) -> Path | None:
    folder = Path(__file__).parent
    paths = (folder / f"_native_{name}{suffix}" for suffix in EXTENSION_SUFFIXES)
    return next((path for path in paths if path.is_file()), None)
