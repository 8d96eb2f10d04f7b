"""Batch normalisation and its activation in the native core beside the slow twin; columns around every strip."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from prpn.kernels.native_batch_norm import Activation
from prpn.model.layers import BatchNorm
from tests.kernels.native import assert_close, needs_native_core, threads_set
from tests.model.cases import kernels_set
from tests.reference.norms import batch_norm

pytestmark = needs_native_core

ACTIVATIONS = {"none": lambda x: x, "relu": torch.relu, "tanh": torch.tanh}


@given(
    st.sampled_from([2, 3, 17, 64]),
    st.sampled_from([1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 193]),
    st.sampled_from(get_args(Activation)),
    st.integers(1, 3),
    st.integers(0, 2**31),
)
def test_it_is_batch_norm_and_activation_forwards_and_backwards(
    rows: int, columns: int, activation: Activation, threads: int, seed: int
) -> None:
    torch.manual_seed(seed)
    norm = BatchNorm(columns, activation)
    torch.nn.init.normal_(norm.weight)
    torch.nn.init.normal_(norm.bias)
    x, direction = torch.randn(rows, columns) * 3 + 2, torch.randn(rows, columns)
    twin = {name: tensor.detach().double() for name, tensor in norm.state_dict(prefix="norm.").items()}
    variables = [x.double(), twin["norm.weight"], twin["norm.bias"]]
    for variable in variables:
        variable.requires_grad_()
    normed, after = batch_norm(variables[0][None], twin, "norm", training=True, mask=None)
    expected = ACTIVATIONS[activation](normed[0])
    wanted = torch.autograd.grad(expected, variables, direction.double())
    x.requires_grad_()
    with kernels_set("fp32"), threads_set(threads):
        found = norm(x)
        gradients = torch.autograd.grad(found, (x, norm.weight, norm.bias), direction)
    assert type(found.grad_fn).__name__ == "_NormaliseBackward"
    assert_close(found, expected, 2e-5, "y")
    for name, gradient, theirs in zip(("gain", "shift"), gradients[1:], wanted[1:], strict=True):
        assert_close(gradient, theirs, 1e-4, name)
    # Two rows stand at ±1 whatever they are: the gradient of x is what is left of terms of this size.
    terms = (norm.weight / (x.var(0, unbiased=False) + norm.eps).sqrt()).abs().max() * direction.abs().max()
    assert (gradients[0] - wanted[0]).abs().max() <= 1e-5 * terms
    for name in ("running_mean", "running_var"):
        assert_close(getattr(norm, name), after[f"norm.{name}"], 1e-5, name)
    assert norm.num_batches_tracked == 1


@pytest.mark.parametrize("activation", get_args(Activation))
def test_what_is_not_a_number_stays_so(activation: Activation) -> None:
    norm = BatchNorm(3, activation)
    x = torch.randn(4, 3)
    x[1, 1] = float("nan")
    with kernels_set("fp32"):
        spoiled = norm(x).isnan()
    assert torch.equal(spoiled, torch.tensor([[False, True, False]]).expand(4, 3))


@pytest.mark.parametrize("rows", [1, 2])
def test_without_rows_enough_and_in_evaluation_the_running_statistics_count(rows: int) -> None:
    norm, x = BatchNorm(3, "relu"), torch.tensor([[1.0, -2.0, 0.5], [0.0, 1.0, 1.0]])[:rows]
    norm.running_mean.fill_(0.25)
    norm.train(rows == 1)
    with kernels_set("fp32"):
        assert_close(norm(x), ((x - 0.25) / (1 + 1e-5) ** 0.5).relu(), 1e-6, "y")
    assert norm.running_mean.eq(0.25).all()
