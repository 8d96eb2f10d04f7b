"""Cross-entropy of a large vocabulary without ever holding all logits: rows are scored in chunks.

    loss_r = logsumexp(z_r) − z_{r,y_r},   z = X Wᵀ + b
    P      = softmax(z) − onehot(y),    ∂X = P W / R,   ∂W = Pᵀ (X / R),   ∂b = Σ_r P_r / R

The gradient of a chunk is known as soon as its logits are, so it is folded into ∂X, ∂W and ∂b at once and the (R, V)
matrices of logits and of their gradient are never stored. native/decoding.cpp does the same with W packed once.

As in PyTorch, a row whose target is −100 has no loss and no gradient, and does not count in the mean.

    # R rows that count, V vocabulary, E embedding
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from prpn.kernels import in_use, native_reads
from prpn.kernels.autocast import backward_without_autocast
from prpn.kernels.checked import address
from prpn.kernels.native import multiplies_fp32, required_library, threads
from prpn.kernels.products import BF16, FP32

CHUNK, SURPLUS = 320, 24_000_000
"""Rows whose P is held at once by PyTorch, and numbers of P that the native core holds."""
IGNORED = -100
"""The target of a row that does not count, as `torch.nn.functional.cross_entropy` has it."""


def chunked_cross_entropy(rows: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy of targets (R,) under logits rows · weightᵀ + bias."""
    loss: Tensor = _ChunkedCrossEntropy.apply(rows, weight, bias, targets)  # type: ignore[no-untyped-call]
    return loss


@torch.no_grad()
def token_cross_entropies(rows: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of each target (R,): what evaluation needs."""
    return _decode(rows, weight, bias, targets, None)[0]


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        if not len(rows):
            raise ValueError("no rows: their mean loss is not defined")
        gradients = rows.new_empty(rows.shape), weight.new_empty(weight.shape), bias.new_empty(bias.shape)
        losses, counted = _decode(rows, weight, bias, targets, gradients)
        ctx.save_for_backward(*gradients)
        return losses.sum() / counted  # of nothing that is not a number, as in PyTorch

    @staticmethod
    @backward_without_autocast
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor | None, ...]:
        d_rows, d_weight, d_bias = ctx.saved_tensors
        if grad_loss.device.type == "cpu" and grad_loss.item() == 1:  # the usual case: nothing to copy
            return d_rows, d_weight, d_bias, None
        return d_rows * grad_loss, d_weight * grad_loss, d_bias * grad_loss, None


Gradients = tuple[Tensor, Tensor, Tensor]
"""∂rows (R, E), ∂W (V, E) and ∂b (V,) of the mean cross-entropy."""


def _decode(
    rows: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, gradients: Gradients | None
) -> tuple[Tensor, int]:
    """Cross-entropies of all rows, and how many count; the gradients of their mean, written where they are wanted."""
    counts = _counting(targets, len(rows), len(weight))
    if counts is None:
        return _decode_all(rows, weight, bias, targets, gradients), len(rows)
    losses, kept = rows.new_zeros(len(rows)), counts.nonzero().squeeze(1)
    for gradient in gradients or ():
        gradient.zero_()
    if len(kept):
        some = None if gradients is None else (rows.new_empty(len(kept), rows.shape[1]), *gradients[1:])
        losses[kept] = _decode_all(rows[kept], weight, bias, targets[kept], some)
        if gradients is not None and some is not None:
            gradients[0][kept] = some[0]
    return losses, len(kept)


def _counting(targets: Tensor, rows: int, words: int) -> Tensor | None:
    """Which rows count; None: all. Targets beyond the vocabulary are refused."""
    if targets.shape != (rows,):
        raise ValueError(f"{rows} rows need as many targets, not an array of shape {tuple(targets.shape)}")
    if targets.dtype != torch.int64:
        raise TypeError(f"targets are numbers of words in int64, not in {targets.dtype}")
    known = (targets >= 0) & (targets < words)
    if known.all():
        return None
    if len(wrong := (~known & (targets != IGNORED)).nonzero()):
        row = int(wrong[0])
        raise IndexError(f"the target of row {row} is {int(targets[row])}, and there are {words} words")
    return known


def _decode_all(rows: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, gradients: Gradients | None) -> Tensor:
    """The same where all rows count.

    Texts are scored some hundred rows at a time: in fp32 packing W would take longer than it saves. So it would where
    PyTorch's own products are the faster ones.
    """
    form = BF16 if in_use() == "bf16" else FP32
    if native_reads(rows) and (form == BF16 or (gradients is not None and multiplies_fp32())):
        return native_decode(rows, weight, bias, targets, gradients, form)
    return torch_decode(rows, weight, bias, targets, gradients)


def native_decode(
    rows: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, gradients: Gradients | None, form: int
) -> Tensor:
    """The same by the native core; the gradients are contiguous."""
    rows, weight, bias, targets = (x.contiguous() for x in (rows, weight, bias, targets))
    (count, size), words = rows.shape, len(weight)
    losses, chunk = rows.new_empty(count), max(1, SURPLUS // max(1, words))
    given = (rows, (count, size)), (weight, (words, size)), (bias, (words,))
    wanted = zip(gradients or (None, None, None), (shape for _, shape in given), strict=True)
    required_library().prpn_decoding(
        *(address(x, shape) for x, shape in given), address(targets, (count,), kind="int64"), count, size, words,
        chunk, form, address(losses, (count,)), *(address(x, shape) for x, shape in wanted), threads(),
    )  # fmt: skip
    return losses


def torch_decode(rows: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, gradients: Gradients | None) -> Tensor:
    """The same by PyTorch."""
    losses, buffer = rows.new_empty(len(rows)), rows.new_empty(min(CHUNK, len(rows)), len(weight))
    if gradients is not None:
        d_rows, d_weight, d_bias = gradients[0], gradients[1].zero_(), gradients[2].zero_()
        share = 1 / len(rows)
    for start in range(0, len(rows), CHUNK):
        chunk, wanted = rows[start : start + CHUNK], targets[start : start + CHUNK, None]
        logits = torch.addmm(bias, chunk, weight.t(), out=buffer[: len(chunk)])
        peak, score = logits.amax(1, keepdim=True), logits.gather(1, wanted)
        surplus = logits.sub_(peak).exp_()
        normaliser = surplus.sum(1, keepdim=True)
        losses[start : start + CHUNK] = (normaliser.log() + peak - score).squeeze(1)
        if gradients is not None:
            surplus.div_(normaliser).scatter_add_(1, wanted, surplus.new_full((), -1.0).expand(wanted.shape))
            torch.mm(surplus, weight, out=d_rows[start : start + CHUNK]).mul_(share)
            d_weight.addmm_(surplus.t(), chunk * share)
            d_bias += surplus.sum(0) * share
    return losses
