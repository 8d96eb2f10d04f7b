"""The packed product, in fp32, bf16 and bf16 tiles, for sizes around every block and panel."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from prpn.kernels import native, products
from prpn.kernels.native import address, required_library
from tests.kernels.native import assert_close, needs_native_core
from tests.model.cases import kernels_set

pytestmark = needs_native_core

FP32, BF16, TILES = range(3)
depths = st.sampled_from([1, 7, 16, 31, 33, 64, 100, 1280, 1281, 2600])  # the last ones in several stages
sizes = st.sampled_from([1, 2, 5, 7, 8, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 100])


def product(a: Tensor, w: Tensor, start: Tensor, kind: int, threads: int) -> Tensor:
    c = start.clone()
    required_library().prpn_product(
        address(a), len(a), address(w), a.shape[1], len(w), kind, address(c), threads
    )  # fmt: skip
    return c


@settings(max_examples=200)
@given(sizes, depths, sizes, st.sampled_from([FP32, BF16, TILES]), st.integers(1, 3), st.integers(0, 2**31))
def test_the_packed_product_is_the_product(
    rows: int, depth: int, columns: int, kind: int, threads: int, seed: int
) -> None:
    torch.manual_seed(seed)
    a, w, start = torch.randn(rows, depth), torch.randn(columns, depth), torch.randn(rows, columns)
    found = product(a, w, start, kind, threads)
    if kind != FP32:  # rounding the factors is all that bf16 changes
        a, w = products.rounded(a), products.rounded(w)
    assert_close(found, start.double() + a.double() @ w.double().t(), 2e-6, "product")


@pytest.mark.parametrize("kind", [BF16, TILES])
def test_rounding_is_to_the_nearest_even(kind: int) -> None:
    values = torch.tensor([1.0, 1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-9, 3.0e38, 1e-40, float("inf")])[:, None]
    found = product(values, torch.ones(1, 1), torch.zeros(7, 1), kind, 1)
    expected = products.rounded(values)
    if kind == BF16 and native.instruction_set() == "avx512bf16":  # its instruction counts denormal numbers as 0
        expected[5] = 0
    assert torch.equal(found, expected)
    nan = product(torch.full((1, 1), float("nan")), torch.ones(1, 1), torch.zeros(1, 1), kind, 1)
    assert nan.isnan().all()


@given(st.integers(1, 5), st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**31))
def test_a_linear_map_in_bf16_rounds_its_factors_and_its_result(
    rows: int, inputs: int, outputs: int, seed: int
) -> None:
    torch.manual_seed(seed)
    x, weight = torch.randn(2, rows, inputs, requires_grad=True), torch.randn(outputs, inputs, requires_grad=True)
    bias, d = torch.randn(outputs, requires_grad=True), torch.randn(2, rows, outputs)
    with kernels_set("bf16"):
        y = products.linear(x, weight, bias)
        gradients = torch.autograd.grad((y * d).sum(), (x, weight, bias))
    small = products.rounded
    assert_close(y, small(small(x) @ small(weight).t()) + bias, 5e-3, "y")
    assert_close(gradients[0], small(small(d) @ small(weight)), 5e-3, "x")
    assert_close(gradients[1], small(small(d.flatten(0, 1)).t() @ small(x.flatten(0, 1))), 5e-3, "weight")
    assert_close(gradients[2], d.sum((0, 1)), 1e-5, "bias")
