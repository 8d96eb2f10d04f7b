"""Linear combinations of tensors of one shape, several at once, by a small matrix.

    Y_i = Σ_j M_ij X_j        or added to what Y_i was

A tensor that ends earlier than the longest of those beside it counts as zero there if it is read, and is not written.
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
    begin, last = 0, max(map(len, inputs))
    while begin < last:
        read = [j for j, x in enumerate(inputs) if len(x) > begin]
        written = [i for i, y in enumerate(outputs) if len(y) > begin]
        end = min([len(inputs[j]) for j in read] + [len(outputs[i]) for i in written])
        part = [[matrix[i][j] for j in read] for i in written]
        _combine(part, [inputs[j][begin:end] for j in read], [outputs[i][begin:end] for i in written], add)
        begin = end


def _combine(matrix: Matrix, inputs: Sequence[Tensor], outputs: Sequence[Tensor], add: bool) -> None:
    if native_reads(inputs[0]):
        _native(matrix, inputs, outputs, add)
        return
    for row, output in zip(matrix, outputs, strict=True):
        terms = [x if factor == 1 else factor * x for factor, x in zip(row, inputs, strict=True) if factor]
        if terms:
            total = sum(terms[1:], terms[0])
            output.copy_(output + total if add else total)
        elif not add:
            output.zero_()


def _native(matrix: Matrix, inputs: Sequence[Tensor], outputs: Sequence[Tensor], add: bool) -> None:
    factors = [factor for row in matrix for factor in row]
    required_library().prpn_combine(
        (ctypes.c_float * len(factors))(*factors), len(outputs), len(inputs), _addresses(inputs), _addresses(outputs),
        *inputs[0].shape, *inputs[0].stride()[:2], *outputs[0].stride()[:2], add, threads(),
    )  # fmt: skip


def _addresses(tensors: Sequence[Tensor]) -> ctypes.Array[Pointer]:
    first = tensors[0]
    assert first.stride(-1) == 1 or first.shape[-1] == 1
    assert all(tensor.stride() == first.stride() for tensor in tensors)
    return (Pointer * len(tensors))(*map(address, tensors))
