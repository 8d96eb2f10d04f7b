"""The packed product, in fp32, bf16 and bf16 tiles, for sizes around every block and panel."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from prpn.kernels import native, products
from tests.kernels.native import BF16, FP32, TILES, assert_close, needs_native_core, rounded, threads_set
from tests.model.cases import kernels_set

pytestmark = needs_native_core

depths = st.sampled_from([1, 7, 16, 31, 33, 64, 100, 1280, 1281, 2600])  # the last ones in several stages
sizes = st.sampled_from([1, 2, 5, 7, 8, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 100, 193])


def product(a: Tensor, w: Tensor, start: Tensor, kind: int, threads: int, add: bool = True) -> Tensor:
    """Added to what was there (n, m), or to a row (m,) that all have, or written over what was there."""
    out = start.clone() if start.dim() == 2 else torch.full((len(a), w.shape[1]), torch.nan)
    with threads_set(threads):
        return products.native_product(a, w, (out if start.dim() == 2 else start) if add else None, out, kind)


def drawn(rows: int, columns: int, turned: bool) -> Tensor:
    """A matrix that lies in memory by rows, with a gap after each, or by columns."""
    return torch.randn(columns, rows).t() if turned else torch.randn(rows, columns + 3)[:, :columns]


@settings(max_examples=300)
@given(
    sizes, depths, sizes, st.booleans(), st.booleans(), st.booleans(), st.booleans(),
    st.sampled_from([FP32, BF16, TILES]), st.integers(1, 3), st.integers(0, 2**31),
)  # fmt: skip
def test_the_packed_product_is_the_product(
    rows: int, depth: int, columns: int, a_turned: bool, w_turned: bool, add: bool, one_row: bool, kind: int,
    threads: int, seed: int,
) -> None:  # fmt: skip
    torch.manual_seed(seed)
    a, w = drawn(rows, depth, a_turned), drawn(depth, columns, w_turned)
    start = torch.randn(columns) if one_row else torch.randn(rows, columns)
    found = product(a, w, start, kind, threads, add)
    if kind != FP32:  # rounding the factors is all that bf16 changes
        a, w = rounded(a), rounded(w)
    assert_close(found, start.double() * add + a.double() @ w.double(), 2e-6, "product")


@pytest.mark.parametrize("kind", [FP32, BF16, TILES])
def test_a_product_of_nothing_is_zero(kind: int) -> None:
    assert torch.equal(product(torch.ones(3, 0), torch.ones(0, 2), torch.ones(3, 2), kind, 2, False), torch.zeros(3, 2))
    assert product(torch.ones(0, 3), torch.ones(3, 2), torch.ones(0, 2), kind, 2).shape == (0, 2)


@pytest.mark.parametrize("kind", [BF16, TILES])
def test_rounding_is_to_the_nearest_even(kind: int) -> None:
    values = torch.tensor([1.0, 1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-9, 3.0e38, 1e-40, float("inf")])[:, None]
    found = product(values, torch.ones(1, 1), torch.zeros(7, 1), kind, 1)
    expected = rounded(values)
    if native.instruction_set() in ("amx", "avx512bf16") and found[5] == 0:
        expected[5] = 0  # their instructions may count denormal numbers as 0
    assert torch.equal(found, expected)
    nan = product(torch.full((1, 1), float("nan")), torch.ones(1, 1), torch.zeros(1, 1), kind, 1)
    assert nan.isnan().all()


@given(st.integers(1, 5), st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**31))
def test_a_linear_map_in_bf16_rounds_its_factors_alone(rows: int, inputs: int, outputs: int, seed: int) -> None:
    torch.manual_seed(seed)
    x, weight = torch.randn(2, rows, inputs, requires_grad=True), torch.randn(outputs, inputs, requires_grad=True)
    bias, d = torch.randn(outputs, requires_grad=True), torch.randn(2, rows, outputs)
    with kernels_set("bf16"):
        y = products.linear(x, weight, bias)
        gradients = torch.autograd.grad((y * d).sum(), (x, weight, bias))
    assert_close(y, rounded(x) @ rounded(weight).t() + bias, 1e-5, "y")
    assert_close(gradients[0], rounded(d) @ rounded(weight), 1e-5, "x")
    assert_close(gradients[1], rounded(d.flatten(0, 1)).t() @ rounded(x.flatten(0, 1)), 1e-5, "weight")
    assert_close(gradients[2], d.sum((0, 1)), 1e-5, "bias")


@pytest.mark.parametrize("native_is_faster", [True, False])
@pytest.mark.parametrize("rows", [products.WORTH_PACKING - 1, products.WORTH_PACKING])
def test_large_products_in_fp32_are_exact_whoever_multiplies(
    rows: int, native_is_faster: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = []
    monkeypatch.setattr(products, "multiplies_fp32", lambda: native_is_faster)
    native_product = products.native_product
    monkeypatch.setattr(products, "native_product", lambda *all_: called.append(1) or native_product(*all_))
    torch.manual_seed(1)
    a, b, start = torch.randn(rows, 50), torch.randn(50, 33), torch.randn(rows, 33)
    with kernels_set("fp32"):
        found = products.product(a, b), products.product(a, b, out := start.clone(), out)
    with kernels_set("bf16"):
        precise = products.product(a, b, precise=True)
    assert bool(called) == (native_is_faster and rows >= products.WORTH_PACKING)
    exact = a.double() @ b.double()
    assert_close(found[0], exact, 2e-6, "product")
    assert_close(found[1], start.double() + exact, 2e-6, "added product")
    assert torch.equal(precise, found[0])


def test_whose_processor_this_is_decides_who_multiplies_fp32() -> None:
    makers = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("vendor_id")]
    assert native.multiplies_fp32() == ("GenuineIntel" not in makers[0])
