"""Normalisations, and rows taken out of a padded batch and put back."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from prpn.model.layers import BatchNorm, LayerNorm, place_rows, select_rows
from tests.model.cases import assert_same, flavours, normal, seeds
from tests.reference.norms import layer_norm


@given(flavours, st.integers(2, 8), seeds)
def test_layer_norm_equals_the_twin(flavour: str, size: int, seed: int) -> None:
    norm = LayerNorm(size, flavour).double()
    with torch.no_grad():
        norm.gain.copy_(normal(seed, size))
        norm.bias.copy_(normal(seed + 1, size))
    x = 3 + 2 * normal(seed + 2, 4, size)
    assert_same(norm(x), layer_norm(x, {"n.gain": norm.gain, "n.bias": norm.bias}, "n", flavour), 1e-12)


@given(seeds)
def test_the_two_layer_norms_differ(seed: int) -> None:
    x = normal(seed, 4, 5)
    paper, released = (LayerNorm(5, flavour).double()(x) for flavour in ("paper", "released"))
    assert_same(paper.pow(2).mean(-1), torch.ones(4).double(), 0.05)  # biased variance
    assert_same(released.pow(2).sum(-1) / 4, torch.ones(4).double(), 1e-3)  # unbiased deviation


@pytest.mark.parametrize("training", [True, False])
def test_a_lone_row_uses_and_keeps_the_running_statistics(training: bool) -> None:
    norm = BatchNorm(3).double().train(training)
    norm.running_mean += 2
    norm.running_var *= 4
    before = norm.running_mean.clone(), norm.running_var.clone()
    row = normal(1, 1, 3)
    assert_same(norm(row), (row - 2) / (4 + norm.eps) ** 0.5, 1e-12)
    assert torch.equal(norm.running_mean, before[0])
    assert torch.equal(norm.running_var, before[1])


@given(st.integers(1, 5), st.integers(1, 4), st.booleans(), seeds)
def test_rows_go_back_to_where_they_came_from(steps: int, batch: int, masked: bool, seed: int) -> None:
    x = normal(seed, steps, batch, 2)
    mask = normal(seed + 1, steps, batch) > 0 if masked else None
    rows = select_rows(x, mask)
    back = place_rows(rows, mask, batch)
    if mask is None:
        assert torch.equal(rows, x.reshape(-1, 2))
        assert torch.equal(back, x)
    else:
        assert len(rows) == mask.sum()
        assert torch.equal(back, x * mask[..., None])
