"""The building blocks that the three networks share: two normalisations and dropout.

layer norm, paper:    γ (x − μ) / √(σ² + 1e-5) + β         over the features, biased variance (Ba et al. 2016)
layer norm, released: γ (x − μ) / (σ̂ + 1e-6) + β           unbiased standard deviation
batch norm:           over rows = real positions of the chunk, so that padding never enters its statistics
locked dropout:       one mask for all steps of a chunk (Gal & Ghahramani 2016), another for each stream
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prpn import kernels
from prpn.kernels.layer_norm import PAPER_EPSILON, RELEASED_EPSILON, fast_layer_norm
from prpn.kernels.native_batch_norm import Activation, native_batch_norm
from prpn.kernels.native_dropout import native_dropout
from prpn.kernels.products import linear


class LayerNorm(nn.Module):
    """Layer normalisation over the last dimension, in the paper's or the released form."""

    def __init__(self, size: int, flavour: str) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))
        self.released = flavour == "released"

    def forward(self, x: Tensor) -> Tensor:
        """Normalise (…, features)."""
        if kernels.in_use() != "autograd":
            return fast_layer_norm(x, self.gain, self.bias, self.released)
        if not self.released:
            return F.layer_norm(x, self.gain.shape, self.gain, self.bias, PAPER_EPSILON)
        spread, mean = torch.std_mean(x, dim=-1, keepdim=True)
        return self.gain * (x - mean) / (spread + RELEASED_EPSILON) + self.bias


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation of rows (positions, features), and an activation.

    A lone row uses the running statistics, having none itself.
    """

    def __init__(self, features: int, activation: Activation = "none") -> None:
        super().__init__(features)
        self.activation = activation

    def forward(self, rows: Tensor) -> Tensor:
        """Normalise (R, features)."""
        if self.training and len(rows) > 1 and kernels.native_reads(rows):
            return native_batch_norm(rows, self, self.activation)
        if self.training and len(rows) < 2:
            normed = F.batch_norm(rows, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        else:
            normed = super().forward(rows)
        return normed if self.activation == "none" else getattr(normed, self.activation)()


class Linear(nn.Linear):
    """A linear map whose products are fp32 or bf16, as the kernels in use have it."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (…, inputs) to (…, outputs)."""
        return linear(x, self.weight, self.bias)


def dropout(x: Tensor, rate: float, training: bool, locked: bool = False) -> Tensor:
    """Drop elements of x with probability `rate` while training, and scale up the others; `locked`: x is (T, B, …)."""
    if not training or rate == 0:
        return x
    if locked:
        return x * dropout_mask(x, tuple(x.shape[1:]), rate)
    return native_dropout(x, rate) if kernels.native_reads(x) else F.dropout(x, rate, training)


def dropout_of_rows(
    rows: Tensor, mask: Tensor | None, batch: int, rate: float, training: bool, locked: bool = False
) -> Tensor:
    """`dropout` of the real positions (R, …) of a chunk of B streams."""
    if not locked or not training or rate == 0:
        return dropout(rows, rate, training)
    steps = len(rows) // batch if mask is None else len(mask)
    return rows * select_rows(dropout_mask(rows, (batch, rows.shape[-1]), rate).expand(steps, -1, -1), mask)


def dropout_mask(like: Tensor, shape: tuple[int, ...], rate: float) -> Tensor:
    """A mask of 0 and 1/(1 − rate) in the type of `like`, whose mean is 1."""
    return (torch.rand(shape, device=like.device) >= rate).to(like.dtype) / (1 - rate)


def select_rows(x: Tensor, mask: Tensor | None) -> Tensor:
    """The real positions of (T, B, …) as rows (R, …), in reading order; without a mask all of them."""
    return x.flatten(0, 1) if mask is None else x[mask]


def place_rows(rows: Tensor, mask: Tensor | None, batch: int) -> Tensor:
    """Inverse of `select_rows`: rows (R, …) back at their positions (T, B, …), zero at padding."""
    if mask is None:
        return rows.view(-1, batch, *rows.shape[1:])
    return rows.new_zeros(*mask.shape, *rows.shape[1:]).index_put((mask,), rows)
