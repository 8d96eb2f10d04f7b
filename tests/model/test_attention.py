"""Structured attention: against the twin, and what it must be whatever the gates are."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from prpn.model.attention import structured_attention
from tests.model.cases import assert_same, normal, seeds
from tests.reference import attention as twin


@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 7), st.booleans(), seeds)
def test_weights_and_gradients_equal_the_twin(batch: int, slots: int, size: int, closed: bool, seed: int) -> None:
    key = normal(seed, batch, size).requires_grad_()
    tape = normal(seed + 1, slots, batch, size).requires_grad_()
    gates = normal(seed + 2, batch, slots).sigmoid()
    if closed:
        gates[:, : slots // 2 + 1] = 0
    gates.requires_grad_()
    scores = torch.einsum("nbh,bh->bn", tape, key) / math.sqrt(size)
    mine = structured_attention(scores, gates)
    expected = torch.stack(twin.structured_attention(key, list(tape), list(gates.T)), -1)
    assert_same(mine, expected, 1e-12)
    direction = normal(seed + 3, batch, slots)
    my_gradients = torch.autograd.grad(mine, (key, tape, gates), direction)
    for gradient, theirs in zip(
        my_gradients, torch.autograd.grad(expected, (key, tape, gates), direction), strict=True
    ):
        assert_same(gradient, theirs, 1e-9)


@given(st.integers(1, 6), seeds)
def test_open_gates_give_a_softmax(slots: int, seed: int) -> None:
    scores = 5 * normal(seed, 3, slots)
    assert_same(structured_attention(scores, torch.ones_like(scores)), F.softmax(scores, -1), 1e-7)


@given(st.integers(1, 6), seeds)
def test_closed_gates_give_zero_and_a_gradient_without_nan(slots: int, seed: int) -> None:
    scores, gates = normal(seed, 3, slots).requires_grad_(), torch.zeros(3, slots, dtype=torch.float64)
    weights = structured_attention(scores, gates.requires_grad_())
    assert not weights.any()
    weights.sum().backward()
    assert scores.grad.isfinite().all()
    assert gates.grad.isfinite().all()


def test_large_scores_do_not_overflow() -> None:
    scores = torch.tensor([[1e4, 1e4, -1e4]], dtype=torch.float64)
    assert_same(structured_attention(scores, torch.ones_like(scores)), torch.tensor([[0.5, 0.5, 0.0]]).double(), 1e-7)
