"""Gates as products of factors in the native core, closed and half open ones among them, beside PyTorch's products."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from prpn.kernels.native_stick import native_stick
from prpn.model.parsing import stick
from tests.kernels.native import assert_close, needs_native_core, threads_set
from tests.model.cases import kernels_set

pytestmark = needs_native_core


@given(st.sampled_from([1, 2, 511, 513, 1200]), st.integers(1, 20), st.integers(1, 3), st.integers(0, 2**31))
def test_the_native_stick_and_its_gradient_are_those_of_the_product(
    rows: int, slots: int, threads: int, seed: int
) -> None:
    torch.manual_seed(seed)
    factors = (2 * torch.rand(rows, 1, slots) - 0.5).clamp(0, 1).requires_grad_()  # a quarter is closed, a quarter open
    direction = torch.randn(rows, 1, slots)
    with kernels_set("autograd"):
        expected = stick(factors)
        (wanted,) = torch.autograd.grad(expected, factors, direction)
    with threads_set(threads):
        gates = native_stick(factors)
        (gradient,) = torch.autograd.grad(gates, factors, direction)
    assert_close(gates, expected, 1e-6, "gates")
    assert_close(gradient, wanted, 1e-5, "gradient")


def test_it_is_in_use() -> None:
    factors = torch.full((2, 3), 0.5, requires_grad=True)
    with kernels_set("fp32"):
        assert type(stick(factors).grad_fn).__name__ == "_StickBackward"
