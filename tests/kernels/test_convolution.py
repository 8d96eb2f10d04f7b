"""The parsing network's convolution, tap by tap and by pairs of outputs, beside PyTorch's in float64."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from prpn.kernels import native_convolution, products
from prpn.kernels.convolution import convolve, lying_by_time
from tests.kernels.native import assert_close, needs_native_core, threads_set
from tests.model.cases import kernels_set

NAMES = ("result", "tape", "weight", "bias")


def both(
    choice: str, steps: int, batch: int, lookback: int, embedding: int, channels: int
) -> tuple[list[Tensor], list[Tensor]]:
    """Ours, and PyTorch's in float64: the convolution and the gradients of tape, weight and bias."""
    tape = torch.randn(lookback + steps, batch, embedding)
    weight, bias = torch.randn(channels, embedding, lookback + 1), torch.randn(channels)
    direction = torch.randn(steps, batch, channels)
    mine = [tape.requires_grad_(), lying_by_time(weight), bias.requires_grad_()]
    with kernels_set(choice):
        found = convolve(*mine)
        gradients = torch.autograd.grad(found, mine, direction)
    exact = [x.detach().double().requires_grad_() for x in mine]
    expected = torch.conv1d(exact[0].permute(1, 2, 0), exact[1], exact[2]).permute(2, 0, 1)
    return [found, *gradients], [expected, *torch.autograd.grad(expected, exact, direction.double())]


@contextmanager
def native_convolution_set(paired: bool) -> Iterator[None]:
    """The native core takes few rows, too, on any processor, and all of them in pairs or none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "WORTH_PACKING", 1)
        patch.setattr(products, "multiplies_fp32", lambda: True)
        patch.setattr(native_convolution, "WORTH_PAIRING", 1 if paired else 10**9)
        yield


@settings(max_examples=60)
@given(st.integers(1, 9), st.integers(1, 4), st.integers(0, 11), *[st.integers(1, 20)] * 2, st.integers(0, 2**31))
def test_without_the_core_taps_are_the_convolution(
    steps: int, batch: int, lookback: int, embedding: int, channels: int, seed: int
) -> None:
    torch.manual_seed(seed)
    for name, mine, theirs in zip(NAMES, *both("off", steps, batch, lookback, embedding, channels), strict=True):
        assert_close(mine, theirs, 1e-5, name)


@needs_native_core
@pytest.mark.parametrize("paired", [True, False])
@settings(max_examples=60)
@given(
    st.integers(1, 9), st.integers(1, 4), st.integers(0, 11), st.integers(1, 20), st.integers(1, 20), st.integers(1, 3),
    st.integers(0, 2**31),
)  # fmt: skip
@example(61, 16, 5, 64, 64, 3, 1)  # enough numbers for threads to share what is combined
def test_taps_in_pairs_and_one_by_one_are_the_convolution(
    paired: bool, steps: int, batch: int, lookback: int, embedding: int, channels: int, threads: int, seed: int
) -> None:
    torch.manual_seed(seed)
    with native_convolution_set(paired), threads_set(threads):
        found, expected = both("fp32", steps, batch, lookback, embedding, channels)
    native = found[0].grad_fn.native  # type: ignore[union-attr]
    assert (native.paired > 0) == (paired and steps > 1 and lookback > 1)
    for name, mine, theirs in zip(NAMES, found, expected, strict=True):
        assert_close(mine, theirs, 1e-5, name)


@needs_native_core
@pytest.mark.parametrize("paired", [True, False])
def test_in_bf16_the_result_is_fp32_and_gradients_are_rounded_alike(paired: bool) -> None:
    torch.manual_seed(1)
    with native_convolution_set(paired):
        found, expected = both("bf16", 24, 8, 5, 40, 60)
    assert_close(found[0], expected[0], 1e-5, "result")
    for mine, theirs in zip(found[1:], expected[1:], strict=True):
        assert (mine - theirs).norm() / theirs.norm() < 0.005
    for mine, theirs in zip(found[1:3], expected[1:3], strict=True):  # of tape and weight; the bias's is a sum
        assert (mine - theirs).norm() / theirs.norm() > 1e-5


@needs_native_core
def test_pairs_keep_infinity_from_outputs_that_do_not_see_it() -> None:
    tape = torch.randn(12, 2, 4)
    tape[7] = torch.inf
    with native_convolution_set(True), kernels_set("fp32"):
        found = convolve(tape, lying_by_time(torch.randn(3, 4, 3)), torch.zeros(3))
    assert found[:5].isfinite().all()
    assert not found[5:8].isfinite().any()
