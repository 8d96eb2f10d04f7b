"""Dropout in the native core: masks for any number of rows and columns."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from prpn.kernels.native_dropout import HashedMask, native_dropout
from tests.kernels.native import assert_close, needs_native_core, threads_set

pytestmark = needs_native_core

rows_drawn = st.sampled_from([1, 2, 3, 17, 64])
columns_drawn = st.sampled_from([2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100, 1001])
seeds = st.integers(0, 2**63 - 2)
threads_drawn = st.integers(1, 4)


@given(rows_drawn, columns_drawn, seeds, st.sampled_from([0.1, 0.5, 0.9]), threads_drawn)
def test_a_mask_is_a_function_of_its_seed(rows: int, columns: int, seed: int, rate: float, threads: int) -> None:
    mask = HashedMask(seed, rate).materialise(rows, columns)
    assert ((mask == 0) | ((mask * (1 - rate) - 1).abs() < 1e-6)).all()
    with threads_set(threads):
        x = torch.randn(rows, columns)
        assert torch.equal(HashedMask(seed, rate).apply_to(x), x * mask)
        wide = torch.randn(rows, 2 * columns)
        assert torch.equal(HashedMask(seed, rate).apply_to(wide[:, columns:]), wide[:, columns:] * mask)


def test_masks_drop_as_many_as_they_should_and_look_independent() -> None:
    count = 1_000_000
    for rate in (0.05, 0.35, 0.7):
        one = HashedMask(1, rate).materialise(1000, 1000) == 0
        other = HashedMask(2, rate).materialise(1000, 1000) == 0
        spread = (rate * (1 - rate) / count) ** 0.5
        assert abs(one.float().mean().item() - rate) < 5 * spread
        assert abs((one & other).float().mean().item() - rate**2) < 5 * (rate**2 * (1 - rate**2) / count) ** 0.5
        for neighbour in (one[:, 1:] & one[:, :-1], one[1:] & one[:-1]):  # in its row, in its column
            assert abs(neighbour.float().mean().item() - rate**2) < 5 * (rate**2 * (1 - rate**2) / count) ** 0.5
        by_column, by_row = one.float().mean(0), one.float().mean(1)
        assert (by_column - rate).abs().max() < 6 * (rate * (1 - rate) / 1000) ** 0.5
        assert (by_row - rate).abs().max() < 6 * (rate * (1 - rate) / 1000) ** 0.5


def test_dropout_repeats_with_the_seed_of_torch_and_passes_its_gradient() -> None:
    x = torch.randn(5, 37, requires_grad=True)
    torch.manual_seed(3)
    first = native_dropout(x, 0.4)
    torch.manual_seed(3)
    assert torch.equal(first, native_dropout(x, 0.4))
    assert not torch.equal(first, native_dropout(x, 0.4))
    first.sum().backward()
    assert torch.equal(x.grad != 0, first != 0)
    assert_close(x.grad * x, first, 1e-6, "gradient")
