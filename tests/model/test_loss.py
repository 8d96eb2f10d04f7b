"""Cross-entropy in chunks of rows: the same loss and gradients as torch's, chunk borders included."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from prpn.kernels import loss
from prpn.kernels.loss import chunked_cross_entropy
from prpn.model import PRPN
from tests.model.cases import SMALL, VOCABULARY, assert_same, generator, kernels_set, normal, seeds, tokens_drawn


def problem(rows: int, vocabulary: int, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    leaves = normal(seed, rows, 3), normal(seed + 1, vocabulary, 3), normal(seed + 2, vocabulary)
    targets = torch.randint(vocabulary, (rows,), generator=generator(seed))
    return *(leaf.requires_grad_() for leaf in leaves), targets


@given(st.integers(1, 13), st.integers(1, 9), st.integers(1, 6), seeds)
def test_equals_torch(rows: int, vocabulary: int, chunk: int, seed: int) -> None:
    *leaves, targets = problem(rows, vocabulary, seed)
    x, weight, bias = leaves
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss, "CHUNK", chunk)
        mine = chunked_cross_entropy(x, weight, bias, targets)
    theirs = F.cross_entropy(F.linear(x, weight, bias), targets)
    assert_same(mine, theirs, 1e-12)
    for gradient, expected in zip(
        torch.autograd.grad(3 * mine, leaves), torch.autograd.grad(3 * theirs, leaves), strict=True
    ):
        assert_same(gradient, expected, 1e-12)


def test_gradcheck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "CHUNK", 2)
    assert torch.autograd.gradcheck(chunked_cross_entropy, problem(5, 4, 1))


def test_more_rows_than_one_chunk() -> None:
    *leaves, targets = problem(2 * loss.CHUNK + 3, 5, 1)
    assert_same(chunked_cross_entropy(*leaves, targets), F.cross_entropy(F.linear(*leaves), targets), 1e-12)


def test_logits_far_from_zero_do_not_overflow() -> None:
    *leaves, targets = problem(6, 5, 1)
    x, weight, bias = leaves
    mine = chunked_cross_entropy(1000 * x, weight, bias + 1000, targets)
    assert_same(mine, F.cross_entropy(F.linear(1000 * x, weight, bias + 1000), targets), 1e-12)


@pytest.mark.parametrize("choice", ["off", "autograd"])
def test_loss_is_the_mean_over_real_positions(choice: str) -> None:
    torch.manual_seed(1)
    model, tokens = PRPN(SMALL, VOCABULARY).double().eval(), tokens_drawn(1, 6, 3)
    mask = torch.arange(6)[:, None] < torch.tensor([6, 2, 4])
    output, targets = model(tokens, None, mask), tokens.roll(1, 0)
    with kernels_set(choice):
        mine = model.loss(output, targets, mask)
    likelihoods = model.logits(output, mask).log_softmax(-1).gather(-1, targets[..., None])[..., 0]
    assert_same(mine, -likelihoods[mask].sum() / 12, 1e-12)
