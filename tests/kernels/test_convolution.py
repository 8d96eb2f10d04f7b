"""The parsing network's convolution, tap by tap and by pairs of outputs, beside PyTorch's in float64."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from prpn.kernels import native_convolution, products
from prpn.kernels.convolution import convolve, lying_by_time
from tests.kernels.native import assert_close, needs_native_core, threads_set
from tests.model.cases import kernels_set

KERNELS = ["off", pytest.param("fp32", marks=needs_native_core)]


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


@pytest.mark.parametrize("choice", KERNELS)
@pytest.mark.parametrize("paired", [True, False])
@settings(max_examples=60)
@given(
    st.integers(1, 9), st.integers(1, 4), st.integers(0, 11), st.integers(1, 20), st.integers(1, 20), st.integers(1, 3),
    st.integers(0, 2**31),
)  # fmt: skip
def test_taps_in_pairs_and_one_by_one_are_the_convolution(
    choice: str, paired: bool, steps: int, batch: int, lookback: int, embedding: int, channels: int, threads: int,
    seed: int,
) -> None:  # fmt: skip
    torch.manual_seed(seed)
    with pytest.MonkeyPatch.context() as patch, threads_set(threads):
        patch.setattr(products, "WORTH_PACKING", 1)  # the native core takes few rows, too
        patch.setattr(native_convolution, "WORTH_PAIRING", 1 if paired else 10**9)
        found, expected = both(choice, steps, batch, lookback, embedding, channels)
    for name, mine, theirs in zip(("result", "tape", "weight", "bias"), found, expected, strict=True):
        assert_close(mine, theirs, 1e-5, name)


@needs_native_core
@pytest.mark.parametrize("paired", [True, False])
def test_in_bf16_the_result_is_fp32_and_gradients_are_rounded_alike(
    paired: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    monkeypatch.setattr(products, "WORTH_PACKING", 1)  # the native core takes few rows, too
    monkeypatch.setattr(native_convolution, "WORTH_PAIRING", 1 if paired else 10**9)
    found, expected = both("bf16", 24, 8, 5, 40, 60)
    assert_close(found[0], expected[0], 1e-5, "result")
    for mine, theirs in zip(found[1:], expected[1:], strict=True):
        assert (mine - theirs).norm() / theirs.norm() < 0.005
