"""The decoder in the native core: losses and gradients of any number of rows, words and features, in every format."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from prpn.kernels import loss
from prpn.kernels.loss import chunked_cross_entropy, native_decode, token_cross_entropies, torch_decode
from tests.kernels.native import BF16, FP32, TILES, assert_close, needs_native_core, rounded, threads_set
from tests.model.cases import kernels_set

pytestmark = needs_native_core

NAMES = ("rows", "weight", "bias")
rows_drawn = st.sampled_from([1, 2, 3, 12, 13, 97, 250])
words_drawn = st.sampled_from([1, 2, 3, 15, 16, 17, 31, 32, 33, 95, 96, 97, 767, 769, 1535, 1536, 1537, 3100])
features_drawn = st.sampled_from([1, 2, 7, 16, 33, 64])
chunks_drawn = st.sampled_from([1, 5, 96, 100, 320])


def problem(rows: int, words: int, features: int, scale: float, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(seed)
    targets = torch.randint(words, (rows,))
    return torch.randn(rows, features), scale * torch.randn(words, features), torch.randn(words), targets


def gradients_for(rows: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Places that hold anything but the answer."""
    return torch.full_like(rows, torch.nan), torch.full_like(weight, torch.nan), torch.full_like(bias, torch.nan)


@settings(max_examples=200)
@given(
    rows_drawn, words_drawn, features_drawn, chunks_drawn, st.sampled_from([0.1, 1.0, 30.0]),
    st.sampled_from([FP32, BF16, TILES]), st.integers(1, 4), st.integers(0, 2**31),
)  # fmt: skip
def test_losses_and_gradients_are_those_of_the_equations(
    rows: int, words: int, features: int, chunk: int, scale: float, form: int, threads: int, seed: int
) -> None:
    x, weight, bias, targets = problem(rows, words, features, scale, seed)
    found = gradients_for(x, weight, bias)
    with pytest.MonkeyPatch.context() as patch, threads_set(threads):
        patch.setattr(loss, "SURPLUS", chunk * words)
        losses = native_decode(x, weight, bias, targets, found, form)
        evaluated = native_decode(x, weight, bias, targets, None, form)
    leaves = [t.double().requires_grad_() for t in (*(map(rounded, (x, weight)) if form else (x, weight)), bias)]
    expected = F.cross_entropy(F.linear(*leaves), targets, reduction="none")
    assert_close(losses, expected.detach(), 1e-5, "losses")
    assert torch.equal(evaluated, losses)
    wanted = torch.autograd.grad(expected.mean(), leaves)
    for name, mine, theirs in zip(NAMES, found, wanted, strict=True):  # P is rounded in bf16
        assert_close(rows * mine, rows * theirs, 1e-2 if form else 1e-4, name)


@pytest.mark.parametrize("form", [BF16, TILES])
@pytest.mark.parametrize("rows", [60, 75, 64])  # shares of a mean that bf16 rounds up, down, and not at all
def test_rounding_makes_no_gradient_longer_or_shorter(form: int, rows: int) -> None:
    x, weight, bias, targets = problem(rows, 500, 32, 0.1, 5)
    found = gradients_for(x, weight, bias)
    native_decode(x, weight, bias, targets, found, form)
    leaves = [t.double().requires_grad_() for t in (x, weight, bias)]
    wanted = torch.autograd.grad(F.cross_entropy(F.linear(*leaves), targets), leaves)
    for name, mine, theirs in zip(NAMES, found, wanted, strict=True):
        assert abs(mine.double().norm() / theirs.norm() - 1) < 1e-3, name


@pytest.mark.parametrize("form", [FP32, BF16, TILES])
def test_large_vocabularies_repeat(form: int) -> None:
    x, weight, bias, targets = problem(40, 90_001, 2, 1.0, 7)
    one, again, leaves = gradients_for(x, weight, bias), gradients_for(x, weight, bias), (x, weight, bias)
    with threads_set(3):
        losses = native_decode(*leaves, targets, one, form)
        assert torch.equal(native_decode(*leaves, targets, again, form), losses)
    assert all(map(torch.equal, one, again))
    leaves = [t.double().requires_grad_() for t in (*(map(rounded, (x, weight)) if form else (x, weight)), bias)]
    expected = F.cross_entropy(F.linear(*leaves), targets, reduction="none")
    assert_close(losses, expected.detach(), 1e-5, "losses")
    for name, mine, theirs in zip(NAMES, one, torch.autograd.grad(expected.sum(), leaves), strict=True):
        assert_close(40 * mine, theirs, 1e-2 if form else 1e-4, name)


@given(rows_drawn, words_drawn, chunks_drawn, st.integers(0, 2**31))
def test_torch_does_the_same(rows: int, words: int, chunk: int, seed: int) -> None:
    x, weight, bias, targets = problem(rows, words, 9, 1.0, seed)
    mine, theirs = gradients_for(x, weight, bias), gradients_for(x, weight, bias)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss, "SURPLUS", chunk * words)
        patch.setattr(loss, "CHUNK", chunk)
        losses = native_decode(x, weight, bias, targets, mine, FP32)
        assert_close(torch_decode(x, weight, bias, targets, theirs), losses, 1e-5, "losses")
    for name, one, other in zip(NAMES, mine, theirs, strict=True):
        assert_close(rows * one, rows * other, 1e-5, name)


@pytest.mark.parametrize("form", [FP32, BF16, TILES])
def test_logits_far_from_zero_do_not_overflow(form: int) -> None:
    x, weight, bias, targets = problem(6, 40, 8, 1.0, 1)
    x, weight = rounded(x), rounded(1000 * weight)
    losses = native_decode(x, weight, bias + 1000, targets, None, form)
    assert_close(losses, F.cross_entropy(F.linear(x, weight, bias + 1000), targets, reduction="none"), 1e-5, "losses")


@pytest.mark.parametrize("form", [FP32, BF16, TILES])
@pytest.mark.parametrize("beyond", [30.0, 50.0, 200.0])  # within what sums may be, beyond it, beyond what floats are
@pytest.mark.parametrize("of_rows", [slice(None), slice(0, 1), slice(7, 9), slice(19, 20)])
def test_the_largest_logit_may_come_late(form: int, beyond: float, of_rows: slice) -> None:
    """Later than the first stretch, whose largest logit others are compared with; all rows of a block begin again."""
    x, weight, bias, targets = problem(20, 2000, 8, 0.1, 2)
    x[:, 0] = 0
    x[of_rows, 0] = 1
    weight[1900, 0] = beyond
    targets[::2] = 1900
    found = gradients_for(x, weight, bias)
    losses = native_decode(x, weight, bias, targets, found, form)
    leaves = [t.double().requires_grad_() for t in (*(map(rounded, (x, weight)) if form else (x, weight)), bias)]
    expected = F.cross_entropy(F.linear(*leaves), targets, reduction="none")
    assert_close(losses, expected.detach(), 1e-5, "losses")
    for name, mine, theirs in zip(NAMES, found, torch.autograd.grad(expected.sum(), leaves), strict=True):
        assert_close(20 * mine, theirs, 1e-2 if form else 1e-4, name)


@pytest.mark.parametrize("form", [FP32, BF16, TILES])
def test_what_is_not_a_number_stays_so(form: int) -> None:
    x, weight, bias, targets = problem(3, 40, 8, 1.0, 1)
    x[1, 2] = torch.nan
    gradients = gradients_for(x, weight, bias)
    losses = native_decode(x, weight, bias, targets, gradients, form)
    assert losses.isnan().tolist() == [False, True, False]
    assert gradients[0].isnan().any(1).tolist() == [False, True, False]
    assert gradients[1].isnan().all()
    assert gradients[2].isnan().all()


def test_tensors_may_lie_in_memory_by_columns() -> None:
    x, weight, bias, targets = problem(50, 33, 9, 1.0, 3)
    leaves = [t.requires_grad_() for t in (x.t().contiguous().t(), weight.t().contiguous().t(), bias)]
    expected = torch.autograd.grad(F.cross_entropy(F.linear(*leaves), targets), leaves)
    with kernels_set("fp32"):
        found = torch.autograd.grad(chunked_cross_entropy(*leaves, targets), leaves)
    for name, mine, theirs in zip(NAMES, found, expected, strict=True):
        assert_close(50 * mine, 50 * theirs, 1e-5, name)


@pytest.mark.parametrize("kernels", ["off", "fp32", "bf16"])
def test_the_mean_of_nothing_is_refused(kernels: str) -> None:
    x, weight, bias, targets = problem(0, 33, 9, 1.0, 3)
    with kernels_set(kernels):
        assert token_cross_entropies(x, weight, bias, targets).shape == (0,)
        with pytest.raises(ValueError, match="no rows"):
            chunked_cross_entropy(x, weight, bias, targets)


@pytest.mark.parametrize("native_is_faster", [True, False])
@pytest.mark.parametrize("kernels", ["fp32", "bf16"])
def test_the_model_asks_for_the_precision_in_use(
    kernels: str, native_is_faster: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss, "multiplies_fp32", lambda: native_is_faster)
    x, weight, bias, targets = problem(50, 33, 9, 1.0, 3)
    leaves = [t.requires_grad_() for t in (x, weight, bias)]
    with kernels_set(kernels):
        mean = chunked_cross_entropy(*leaves, targets)
        gradients = torch.autograd.grad(3 * mean, leaves)
        scores = token_cross_entropies(*leaves, targets)
    given = *(leaf.detach() for leaf in leaves), targets
    found = gradients_for(*given[:3])
    if kernels == "bf16":
        losses = native_decode(*given, found, BF16)
    elif native_is_faster:
        losses = native_decode(*given, found, FP32)
    else:
        losses = torch_decode(*given, found)
    assert_close(scores, losses, 1e-5, "scores")
    assert torch.equal(mean, losses.mean())
    for mine, theirs in zip(gradients, found, strict=True):
        assert torch.equal(mine, 3 * theirs)
