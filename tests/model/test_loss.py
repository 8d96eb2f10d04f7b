"""Cross-entropy in chunks of rows: the same loss and gradients as torch's, chunk borders included."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from prpn.kernels import loss
from prpn.kernels.loss import chunked_cross_entropy, token_cross_entropies
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


@pytest.mark.parametrize("choice", ["off", "fp32", "bf16"])
@given(
    st.lists(st.sampled_from([loss.IGNORED, *range(7)]), min_size=1, max_size=13), st.integers(1, 6), seeds,
    st.booleans(),
)  # fmt: skip
@example([loss.IGNORED, loss.IGNORED], 1, 1, True)
def test_rows_without_a_target_do_not_count(
    choice: str, drawn: list[int], chunk: int, seed: int, native_is_faster: bool
) -> None:
    *leaves, _ = problem(len(drawn), 7, seed)
    if choice != "off":
        leaves = [leaf.detach().float().requires_grad_() for leaf in leaves]
    targets = torch.tensor(drawn)
    with pytest.MonkeyPatch.context() as patch, kernels_set(choice):
        patch.setattr(loss, "CHUNK", chunk)
        patch.setattr(loss, "SURPLUS", 7 * chunk)
        patch.setattr(loss, "multiplies_fp32", lambda: native_is_faster)
        mine, each = chunked_cross_entropy(*leaves, targets), token_cross_entropies(*leaves, targets)
        gradients = torch.autograd.grad(mine, leaves)
    logits, tolerance = F.linear(*leaves), {"off": 1e-12, "fp32": 1e-5, "bf16": 0.05}[choice]
    theirs = F.cross_entropy(logits, targets)
    assert mine.isnan() == theirs.isnan() == (set(drawn) == {loss.IGNORED})
    assert_same(each, F.cross_entropy(logits, targets, reduction="none").detach(), tolerance)
    assert (each[targets == loss.IGNORED] == 0).all()
    for gradient, expected in zip(gradients, torch.autograd.grad(theirs, leaves), strict=True):
        assert_same(gradient, expected, tolerance)
    assert (gradients[0][targets == loss.IGNORED] == 0).all()
    if not mine.isnan():
        assert_same(mine, theirs, tolerance)


def test_the_model_ignores_the_same_targets_whatever_runs() -> None:
    torch.manual_seed(1)
    model, tokens = PRPN(SMALL, VOCABULARY).eval(), tokens_drawn(1, 6, 3)
    targets = tokens.roll(1, 0)
    targets[2:4, 1] = loss.IGNORED
    found = []
    for choice in ("autograd", "off", "fp32"):
        with kernels_set(choice):
            output = model(tokens)
            found.append([model.loss(output, targets), *model.token_losses(output, targets)])
    for others in found[1:]:
        for mine, theirs in zip(others, found[0], strict=True):
            assert_same(mine, theirs, 1e-5)


@pytest.mark.parametrize("choice", ["off", "fp32", "bf16"])
@pytest.mark.parametrize("wrong", [-1, -99, 5, 2**40])
def test_targets_that_no_word_has_are_refused(choice: str, wrong: int) -> None:
    *leaves, targets = problem(4, 5, 1)
    leaves = [leaf.float() for leaf in leaves]
    targets[0], targets[2] = loss.IGNORED, wrong
    for function in (chunked_cross_entropy, token_cross_entropies):
        with kernels_set(choice), pytest.raises(IndexError, match=f"^the target of row 2 is {wrong}, .* 5 words$"):
            function(*leaves, targets)
        with kernels_set(choice), pytest.raises(ValueError, match="4 rows need as many targets"):
            function(*leaves, targets[:3])
        with kernels_set(choice), pytest.raises(TypeError, match=r"not in torch\.int32"):
            function(*leaves, targets.int())


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
