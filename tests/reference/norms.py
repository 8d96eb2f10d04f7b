"""The two normalisations.

Layer norm, over the channels of one vector:
  γ (x − mean) / (std + 1e-6) + β             released: std² = Σ (x − mean)² / (n − 1)
  γ (x − mean) / √(var + 1e-5) + β            paper: var = Σ (x − mean)² / n
Batch norm, of one channel over all real positions of the chunk, all time steps and sequences at once:
  γ (x − mean) / √(var + 1e-5) + β            training: var = Σ (x − mean)² / n; evaluation: the running statistics
  running ← 0.9 running + 0.1 batch           where the batch variance is Σ (x − mean)² / (n − 1)
"""

from __future__ import annotations

import torch
from torch import Tensor


def layer_norm(x: Tensor, weights: dict[str, Tensor], name: str, flavour: str) -> Tensor:
    """(B, C) to (B, C), with `name.gain` and `name.bias`."""
    count = x.shape[-1]
    centred = x - x.sum(-1, keepdim=True) / count  # (B, C)
    squares = (centred * centred).sum(-1, keepdim=True)  # (B, 1)
    if flavour == "released":
        scaled = centred / (torch.sqrt(squares / (count - 1)) + 1e-6)
    else:
        scaled = centred / torch.sqrt(squares / count + 1e-5)
    return weights[f"{name}.gain"] * scaled + weights[f"{name}.bias"]


def batch_norm(
    x: Tensor, weights: dict[str, Tensor], name: str, training: bool, mask: Tensor | None
) -> tuple[Tensor, dict[str, Tensor]]:
    """(T, B, C) to (T, B, C) and the running statistics afterwards; `mask` (T, B) is true at real positions."""
    mean, variance = weights[f"{name}.running_mean"], weights[f"{name}.running_var"]  # (C,), (C,)
    after = {f"{name}.running_mean": mean.detach(), f"{name}.running_var": variance.detach()}
    if training:
        real = x.reshape(-1, x.shape[-1]) if mask is None else x[mask]  # (n, C)
        count = real.shape[0]
        mean = real.sum(0) / count
        squares = ((real - mean) * (real - mean)).sum(0)
        variance = squares / count
        batch = {f"{name}.running_mean": mean.detach(), f"{name}.running_var": squares.detach() / (count - 1)}
        after = {key: 0.9 * after[key] + 0.1 * batch[key] for key in after}
    scaled = (x - mean) / torch.sqrt(variance + 1e-5)
    return weights[f"{name}.weight"] * scaled + weights[f"{name}.bias"], after
