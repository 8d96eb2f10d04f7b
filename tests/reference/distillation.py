"""A student's scores and its loss, word by word and pair by pair from the equations in `prpn.distillation.student`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from prpn.distillation.student import Student


@torch.no_grad()
def scores(student: Student, words: Sequence[int], start: int) -> list[float]:
    """Of one sentence, in evaluation mode."""
    convolution, norm, head = (student.parsing[name] for name in ("convolution", "norm", "heads"))
    table, nothing = student.embedding.weight, torch.zeros(student.embedding.embedding_dim, dtype=torch.float64)
    vectors = {-1: table[start], **{t: table[word] for t, word in enumerate(words)}}
    found = []
    for t in range(len(words)):
        total: Tensor = convolution.bias
        for k in range(student.lookback + 1 + student.lookahead):
            total = total + convolution.weight[:, :, k] @ vectors.get(t - student.lookback + k, nothing)
        normed = norm.weight * (total - norm.running_mean) / (norm.running_var + norm.eps).sqrt() + norm.bias
        found.append(float(head.weight[0, :, 0] @ normed.clamp(min=0) + head.bias[0]))
    return found


def splitting_loss(scores: Sequence[Sequence[float]], heights: Sequence[Sequence[float]]) -> float:
    terms = [
        math.log1p(math.exp(score[j] - score[i]))
        for score, height in zip(scores, heights, strict=True)
        for i in range(1, len(score))
        for j in range(1, len(score))
        if max(height[min(i, j) : max(i, j) + 1]) == height[i] > height[j]
    ]
    return sum(terms) / max(1, len(terms))
