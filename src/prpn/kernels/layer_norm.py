"""Layer normalisation that keeps one tensor for its backward pass instead of the three that autograd would.

    y  = (x − μ) / s,    s = √(σ² + ε) (paper),  σ̂ + ε (released, unbiased)
    ∂x = (∂y − mean ∂y − κ y Σ ∂y y) / s,    κ = 1/n (paper),  s / ((n − 1) σ̂) (released)

followed by gain and bias.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from prpn.kernels.autocast import backward_without_autocast

PAPER_EPSILON, RELEASED_EPSILON = 1e-5, 1e-6


def fast_layer_norm(x: Tensor, gain: Tensor, bias: Tensor, released: bool) -> Tensor:
    """The same as `prpn.model.layers.LayerNorm`, over the last dimension of (…, n)."""
    normed: Tensor = _Normalise.apply(x, released)  # type: ignore[no-untyped-call]
    return torch.addcmul(bias, normed, gain)


class _Normalise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, released: bool) -> Tensor:
        normed, scale = torch.empty_like(x), x.new_empty(*x.shape[:-1], 1)
        normalise(x, released, normed, scale)
        ctx.released = released
        ctx.save_for_backward(normed, scale)
        return normed

    @staticmethod
    @backward_without_autocast
    def backward(ctx: Any, d_normed: Tensor) -> tuple[Tensor, None]:
        normed, scale = ctx.saved_tensors
        return normalise_backward(d_normed.clone(), normed, scale, kappa(scale, normed.shape[-1], ctx.released)), None


def normalise(x: Tensor, released: bool, out: Tensor, scale: Tensor) -> None:
    """Write (x − μ)/s to `out` (…, n) and s to `scale` (…, 1)."""
    size = x.shape[-1]
    torch.sub(x, x.mean(-1, keepdim=True), out=out)
    torch.linalg.vector_norm(out, dim=-1, keepdim=True, out=scale)
    if released:
        scale.div_(math.sqrt(size - 1)).add_(RELEASED_EPSILON)
    else:
        scale.square_().div_(size).add_(PAPER_EPSILON).sqrt_()
    out.div_(scale)


def kappa(scale: Tensor, size: int, released: bool) -> Tensor:
    """κ from s and the number of features."""
    if not released:
        return torch.full_like(scale, 1 / size)
    return scale / ((scale - RELEASED_EPSILON).clamp_min(1e-30) * (size - 1))  # equal features have no spread


def normalise_backward(d_normed: Tensor, normed: Tensor, scale: Tensor, kappa: Tensor) -> Tensor:
    """∂x from ∂y (…, n), which is used up."""
    mean = d_normed.mean(-1, keepdim=True)
    projection = (d_normed * normed).sum(-1, keepdim=True).mul_(kappa)
    return d_normed.sub_(mean).addcmul_(normed, projection, value=-1).div_(scale)
