"""Large matrix products in fp32, or in bf16 with fp32 sums and fp32 results.

    bf16:   A · B  →  bf16(A) · bf16(B)

In bf16 they are the native core's (native/product.h), since PyTorch's round their results as well. Processors with AMX
or AVX512_BF16 multiply bf16 faster than fp32; others round and are no faster. In fp32 they are PyTorch's where the
processor is Intel's, whose library it calls, and where there are few rows to pack a matrix for; elsewhere the native
core's, which has up to twice the speed (docs/log.md).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from prpn.kernels import as_forwards, in_use, native_reads
from prpn.kernels.autocast import backward_without_autocast, rounded_linear
from prpn.kernels.checked import address
from prpn.kernels.native import multiplies_fp32, required_library, threads

FP32, BF16 = 0, 1
"""What a product's factors are rounded to, as native/packing.h numbers them."""


WORTH_PACKING = 256
"""Rows from which on packing the other factor is taken to pay in fp32; a guess, not tuned."""


def product(
    a: Tensor, b: Tensor, start: Tensor | None = None, out: Tensor | None = None, precise: bool = False
) -> Tensor:
    """Start + A (n, k) · B (k, m) in the precision in use, or in fp32, written to `out` if there is one.

    `start` is (n, m), such as `out` itself, or a row (m,) for all.
    """
    form = native_form(len(a), a, precise)
    if form is not None:
        return native_product(a, b, start, out, form)
    return torch.mm(a, b, out=out) if start is None else torch.addmm(start, a, b, out=out)


def native_form(rows: int, a: Tensor, precise: bool = False) -> int | None:
    """How the native core is to multiply so many rows of a tensor; None where PyTorch does."""
    if not native_reads(a):
        return None
    if in_use() == "bf16" and not precise:
        return BF16
    return FP32 if rows >= WORTH_PACKING and multiplies_fp32() else None


def native_product(a: Tensor, b: Tensor, start: Tensor | None, out: Tensor | None, form: int) -> Tensor:
    """The same by the native core; A and B may lie in memory by rows or by columns."""
    a, b = (x if 1 in x.stride() else x.contiguous() for x in (a, b))
    (rows, depth), columns = a.shape, b.shape[1]
    if out is None:
        out = a.new_empty(rows, columns)
    start = None if start is None else start.contiguous()
    of_all = start is not None and start.dim() == 1  # one row that all start from
    required_library().prpn_product(
        address(a, (rows, depth), "anyhow"), *a.stride(), address(b, (depth, columns), "anyhow"), *b.stride(),
        rows, depth, columns, form, address(out, (rows, columns)),
        address(start, (columns,) if of_all else (rows, columns)), 0 if of_all else columns, threads(),
    )  # fmt: skip
    return out


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The same as `torch.nn.functional.linear`, in the precision in use, also backwards."""
    if not native_reads(x):
        return rounded_linear(x, weight, bias)
    result: Tensor = _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return result


def split_columns(weight: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The first columns of a weight and the others, whose gradients are joined instead of padded and added up."""
    parts: tuple[Tensor, Tensor] = _SplitColumns.apply(weight, count)  # type: ignore[no-untyped-call]
    return parts


class _SplitColumns(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, count: int) -> tuple[Tensor, Tensor]:
        return weight[:, :count], weight[:, count:]

    @staticmethod
    def backward(ctx: Any, first: Tensor, others: Tensor) -> tuple[Tensor, None]:
        return torch.cat([first, others], 1), None


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.kernels = in_use()
        ctx.save_for_backward(x, weight)
        return product(x.flatten(0, -2), weight.t(), bias).unflatten(0, x.shape[:-1])

    @staticmethod
    @backward_without_autocast
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        rows = gradient.flatten(0, -2)
        wants_x, wants_weight, wants_bias = ctx.needs_input_grad
        with as_forwards(ctx.kernels):
            return (
                product(rows, weight).view_as(x) if wants_x else None,
                product(rows.t(), x.flatten(0, -2)) if wants_weight else None,
                rows.sum(0) if wants_bias else None,
            )
