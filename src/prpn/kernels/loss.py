"""Cross-entropy of a large vocabulary without ever holding all logits: rows are scored in chunks.

    loss = mean_r ( logsumexp(W x_r + b) − (W x_r + b)_{y_r} ),    ∂logits = softmax − onehot

The gradient of a chunk is known as soon as its logits are, so it is folded into ∂x, ∂W and ∂b at once and the (R, V)
matrices of logits and of their gradient are never stored.

    # R rows, V vocabulary, E embedding
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from prpn.kernels import native_reads
from prpn.kernels.native_rows import native_cross_entropy
from prpn.kernels.products import product

CHUNK = 512
"""Rows scored at once."""


def chunked_cross_entropy(rows: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy of targets (R,) under logits rows · weightᵀ + bias."""
    loss: Tensor = _ChunkedCrossEntropy.apply(rows, weight, bias, targets)  # type: ignore[no-untyped-call]
    return loss


@torch.no_grad()
def token_cross_entropies(rows: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of each target (R,): what evaluation needs."""
    losses, buffer = rows.new_empty(len(rows)), rows.new_empty(min(CHUNK, len(rows)), len(weight))
    surplus_of = native_cross_entropy if native_reads(rows) else cross_entropy_in_place
    for start in range(0, len(rows), CHUNK):
        chunk = rows[start : start + CHUNK]
        logits = product(chunk, weight.t(), out=buffer[: len(chunk)])
        losses[start : start + CHUNK] = surplus_of(logits, bias, targets[start : start + CHUNK], None)
    return losses


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        d_rows, d_weight, d_bias = torch.empty_like(rows), torch.zeros_like(weight), torch.zeros_like(bias)
        total, buffer = rows.new_zeros(()), rows.new_empty(min(CHUNK, len(rows)), len(weight))
        surplus_of = native_cross_entropy if native_reads(rows) else cross_entropy_in_place
        share = 1 / len(rows)
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            surplus = product(chunk, weight.t(), out=buffer[: len(chunk)])
            total += surplus_of(surplus, bias, targets[start : start + CHUNK], d_bias).sum()
            product(surplus, weight, out=d_rows[start : start + CHUNK])
            product(surplus.t(), chunk * share, out=d_weight, add=True)
        ctx.save_for_backward(d_rows.mul_(share), d_weight, d_bias.mul_(share))
        return total * share

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor | None, ...]:
        d_rows, d_weight, d_bias = ctx.saved_tensors
        if grad_loss.device.type == "cpu" and grad_loss.item() == 1:  # the usual case: nothing to copy
            return d_rows, d_weight, d_bias, None
        return d_rows * grad_loss, d_weight * grad_loss, d_bias * grad_loss, None


def cross_entropy_in_place(logits: Tensor, bias: Tensor, targets: Tensor, d_bias: Tensor | None) -> Tensor:
    """Cross-entropies (R,) of logits + bias (R, V); unless d_bias is None the logits become softmax − onehot.

    The column sums of softmax − onehot are added to d_bias.
    """
    wanted = targets[:, None]
    logits += bias
    peak, score = logits.amax(1, keepdim=True), logits.gather(1, wanted)
    surplus = logits.sub_(peak).exp_()
    normaliser = surplus.sum(1, keepdim=True)
    if d_bias is not None:
        surplus.div_(normaliser)
        surplus.scatter_add_(1, wanted, surplus.new_full((), -1.0).expand(wanted.shape))
        d_bias += surplus.sum(0)
    return (normaliser.log() + peak - score).squeeze(1)
