"""What is handed to the native core is checked here: arrays become addresses only if they are what it will read.

Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

if TYPE_CHECKING:
    from torch import Tensor

Lying = Literal["by rows", "evenly spaced", "anyhow"]
"""In memory: without gaps, in rows that are equally far apart, or as strides say that the core is told."""


def address(tensor: Tensor | None, shape: Sequence[int], lying: Lying = "by rows", kind: str = "float32") -> int | None:
    """Where the numbers of a tensor lie; None stays None."""
    if tensor is None:
        return None
    if tensor.device.type != "cpu" or _name_of(tensor.dtype) != f"torch.{kind}":
        raise TypeError(f"the native core cannot read {tensor.dtype} on {tensor.device} as {kind}")
    if tensor.shape != shape:
        raise ValueError(f"the native core wants an array of shape {tuple(shape)}, not {tuple(tensor.shape)}")
    if not (tensor.is_contiguous() or lying == "anyhow" or (lying == "evenly spaced" and is_evenly_spaced(tensor))):
        raise ValueError(f"the native core wants an array that lies in memory {lying}, not by {tensor.stride()}")
    return tensor.data_ptr()


def place(array: NDArray[Any], kind: DTypeLike, *shape: int) -> int:
    """Where the numbers of an array of numpy lie; it has no gaps."""
    if array.dtype != kind:
        raise TypeError(f"the native core cannot read {array.dtype} as {np.dtype(kind)}")
    if array.shape != shape:
        raise ValueError(f"the native core wants an array of shape {shape}, not {array.shape}")
    if not array.flags.c_contiguous:
        raise ValueError("the native core wants an array that lies in memory by rows")
    return array.ctypes.data


def place_to_fill(array: NDArray[Any], kind: DTypeLike, *shape: int) -> int:
    """The same of an array that is written to."""
    if not array.flags.writeable:
        raise ValueError("the native core cannot fill an array that is read only")
    return place(array, kind, *shape)


def is_evenly_spaced(x: Tensor) -> bool:
    """Whether every two neighbouring rows are equally far apart, and the numbers of each side by side."""
    regular = all(x.stride(i) == x.stride(i + 1) * x.shape[i + 1] for i in range(x.dim() - 2) if x.shape[i] > 1)
    return regular and (x.stride(-1) == 1 or x.shape[-1] == 1)


def evenly_spaced(x: Tensor) -> Tensor:
    """The same rows, every two neighbours equally far apart."""
    if is_evenly_spaced(x):
        return x
    return x.new_empty(x.shape).copy_(x)  # what PyTorch calls contiguous may have any stride where there is one row


@cache
def _name_of(dtype: object) -> str:
    return str(dtype)
