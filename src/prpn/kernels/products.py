"""Large matrix products in fp32, or in bf16 with fp32 sums.

    bf16:   A · B  →  bf16(bf16(A) · bf16(B))

Processors with AMX multiply bf16 several times as fast as fp32, those with AVX512_BF16 twice as fast. On others the
factors and the result are rounded and the product is fp32, which gives the same results up to the order of summation and
is no faster.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from prpn.kernels import in_use


def product(a: Tensor, b: Tensor, out: Tensor | None = None, add: bool = False) -> Tensor:
    """A (n, k) · B (k, m) in the precision in use, written or added to `out` if there is one."""
    if in_use() != "bf16" or a.dtype != torch.float32:
        if add:
            assert out is not None
            return out.addmm_(a, b)
        return torch.mm(a, b, out=out)
    in_bf16 = has_bf16_products()
    result = (a.bfloat16() @ b.bfloat16()).float() if in_bf16 else rounded(rounded(a) @ rounded(b))
    if out is None:
        return result
    return out.add_(result) if add else out.copy_(result)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The same as `torch.nn.functional.linear`, in the precision in use, also backwards."""
    if in_use() != "bf16" or x.dtype != torch.float32 or x.device.type != "cpu":
        return torch.nn.functional.linear(x, weight, bias)
    result: Tensor = _Linear.apply(x, weight)  # type: ignore[no-untyped-call]
    return result if bias is None else result + bias


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x.flatten(0, -2), weight.t()).unflatten(0, x.shape[:-1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        rows = gradient.flatten(0, -2)
        return product(rows, weight).view_as(x), product(rows.t(), x.flatten(0, -2))


@cache
def has_bf16_products() -> bool:
    """Whether this processor multiplies bf16 faster than fp32."""
    return bool(torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported())


def rounded(x: Tensor) -> Tensor:
    """X rounded to bf16, as fp32."""
    return x.bfloat16().float()
