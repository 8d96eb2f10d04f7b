"""Linear combinations of tensors of one shape, several at once, by a small matrix.

    Y_i = Σ_j M_ij X_j        or added to what Y_i was

A tensor that ends earlier than others beside it counts as zero there if it is read, and is not written.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from torch import Tensor

from prpn.kernels import native_reads
from prpn.kernels.native import Pointer, address, required_library, threads

Matrix = Sequence[Sequence[float]]


def combine(matrix: Matrix, inputs: Sequence[Tensor], outputs: Sequence[Tensor], add: bool = False) -> None:
    """Write outputs (P_i, R, N), or add to them, from inputs (P_j, R, N); those of a kind are equally strided."""
    if native_reads(inputs[0]):
        _native(matrix, inputs, outputs, add)
        return
    for row, output in zip(matrix, outputs, strict=True):
        if not add:
            output.zero_()
        for factor, x in zip(row, inputs, strict=True):
            common = min(x.shape[0], output.shape[0])
            if factor:
                output[:common].add_(x[:common], alpha=factor)


class _Arrays(ctypes.Structure):
    """The struct of the same name in native/combining.cpp, field by field."""

    _fields_ = (
        ("count", ctypes.c_int64),
        ("places", ctypes.POINTER(Pointer)),
        ("planes", ctypes.POINTER(ctypes.c_int64)),
        ("plane_stride", ctypes.c_int64),
        ("row_stride", ctypes.c_int64),
    )


def _native(matrix: Matrix, inputs: Sequence[Tensor], outputs: Sequence[Tensor], add: bool) -> None:
    factors = [factor for row in matrix for factor in row]
    _, rows, columns = inputs[0].shape
    required_library().prpn_combine(
        (ctypes.c_float * len(factors))(*factors), ctypes.byref(_arrays(inputs)), ctypes.byref(_arrays(outputs)),
        rows, columns, add, threads(),
    )  # fmt: skip


def _arrays(tensors: Sequence[Tensor]) -> _Arrays:
    count, strides = len(tensors), tensors[0].stride()
    assert strides[2] == 1 or tensors[0].shape[2] == 1
    assert all(tensor.stride() == strides for tensor in tensors)
    places = (Pointer * count)(*map(address, tensors))
    planes = (ctypes.c_int64 * count)(*(tensor.shape[0] for tensor in tensors))
    return _Arrays(count, places, planes, *strides[:2])
