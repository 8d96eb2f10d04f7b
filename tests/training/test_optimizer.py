"""The optimiser is PyTorch's Adam, with less memory where it has no first moment: without the native core to the last
bit unless it clips, with it to the last digits."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from torch.nn import Parameter
from torch.nn.utils import clip_grad_norm_

from prpn.config import TrainingConfig
from prpn.kernels import in_use
from prpn.training.checkpoint import load_optimizer, optimizer_tensors
from prpn.training.optimizer import Adam
from tests.kernels.native import needs_native_core, threads_set
from tests.model.cases import kernels_set


def parameters() -> list[Parameter]:
    torch.manual_seed(1)
    return [Parameter(torch.randn(shape)) for shape in ((3, 5), (37,), (70, 70))]


def config(beta1: float, clip: float = 0.0) -> TrainingConfig:
    return TrainingConfig(epochs=1, beta1=beta1, weight_decay=0.01, clip=clip)


def pytorch(weights: list[Parameter], config: TrainingConfig) -> torch.optim.Adam:
    betas = config.beta1, config.beta2
    return torch.optim.Adam(weights, config.learning_rate, betas, config.epsilon, config.weight_decay, fused=True)


def step(optimizer: torch.optim.Optimizer, weights: list[Parameter], seed: int, clip: float = math.inf) -> None:
    """The last weight has a gradient every other time only, so that norms are about 70 and about 7."""
    torch.manual_seed(seed)
    for weight in weights:
        weight.grad = torch.randn_like(weight)
    if seed % 2:
        weights[-1].grad = None
    clip_grad_norm_(weights, clip)
    optimizer.step()


def assert_equal(ours: list[Parameter], theirs: list[Parameter]) -> None:
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))


@pytest.fixture(autouse=True, params=["off", "fp32"])
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both ways to take a step."""
    with kernels_set(request.param):
        yield


def assert_moved_alike(ours: list[Parameter], theirs: list[Parameter]) -> None:
    if in_use() == "off":
        assert_equal(ours, theirs)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("beta1", [0.0, 0.9])
def test_it_moves_as_pytorchs_adam(beta1: float) -> None:
    ours, theirs = parameters(), parameters()
    optimizer, reference = Adam(ours, config(beta1)), pytorch(theirs, config(beta1))
    for seed in range(6):
        step(optimizer, ours, seed)
        step(reference, theirs, seed)
        assert_moved_alike(ours, theirs)


@pytest.mark.parametrize("clip", [1.0, 20.0, 100.0], ids=["always", "at times", "never"])
@pytest.mark.parametrize("beta1", [0.0, 0.9])
def test_it_clips_as_pytorch(beta1: float, clip: float) -> None:
    ours, theirs = parameters(), parameters()
    optimizer, reference = Adam(ours, config(beta1, clip)), pytorch(theirs, config(beta1))
    for seed in range(6):
        step(optimizer, ours, seed)
        step(reference, theirs, seed, clip)
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)
    if clip == 100:
        assert_moved_alike(ours, theirs)


def test_without_first_moment_nothing_is_kept_of_the_gradient() -> None:
    weights = parameters()
    optimizer = Adam(weights, config(0.0))
    step(optimizer, weights, 0)
    assert all(set(optimizer.state[weight]) == {"step", "exp_avg_sq"} for weight in weights)
    assert not any("exp_avg." in f"{name}." for name in optimizer_tensors(optimizer))


def test_it_goes_on_from_pytorchs_adam() -> None:
    ours, theirs = parameters(), parameters()
    reference = pytorch(theirs, config(0.0))
    for seed in range(3):
        step(reference, theirs, seed)
    with torch.no_grad():
        for one, other in zip(ours, theirs, strict=True):
            one.copy_(other)
    optimizer = Adam(ours, config(0.0))
    load_optimizer(optimizer, {name: tensor.clone() for name, tensor in optimizer_tensors(reference).items()})
    for seed in range(3, 6):
        step(optimizer, ours, seed)
        step(reference, theirs, seed)
    assert_moved_alike(ours, theirs)


@pytest.mark.parametrize("beta1", [0.0, 0.9])
@pytest.mark.parametrize("threads", [1, 2])
def test_weights_lie_in_any_order_and_gradients_in_another(beta1: float, threads: int) -> None:
    """More numbers than a block has; the norm of all is clipped whoever adds it up."""
    torch.manual_seed(1)
    ours = [Parameter(torch.randn(3, 40_000).t()), Parameter(torch.randn(2, 7, 5).permute(1, 2, 0))]
    theirs = [Parameter(weight.detach().contiguous()) for weight in ours]
    optimizer, reference = Adam(ours, config(beta1, 1.0)), pytorch(theirs, config(beta1))
    with threads_set(threads):
        for _ in range(3):
            for one, other in zip(ours, theirs, strict=True):
                other.grad = torch.randn(other.shape)
                one.grad = other.grad.clone()
            clip_grad_norm_(theirs, 1.0)
            optimizer.step()
            reference.step()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=3e-6, atol=1e-6)


def test_a_gradient_that_is_not_a_number_spoils_the_weights() -> None:
    weights = parameters()
    optimizer = Adam(weights, config(0.0, 1.0))
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    weights[0].grad[0, 0] = math.nan
    optimizer.step()
    assert all(weight.isnan().any() for weight in weights)


def test_a_closure_makes_the_gradients_that_are_followed() -> None:
    ours, theirs = parameters(), parameters()
    optimizer, reference = Adam(ours, config(0.0, 1.0)), Adam(theirs, config(0.0, 1.0))

    def loss() -> torch.Tensor:
        total = sum((weight**2).sum() for weight in ours)
        total.backward()
        return total

    assert optimizer.step(loss) > 0
    for weight in theirs:
        weight.grad = 2 * weight.detach()
    reference.step()
    assert_equal(ours, theirs)


@needs_native_core
def test_autograd_notices_that_weights_have_moved() -> None:
    weight = Parameter(torch.ones(3))
    squares = (weight**2).sum()
    optimizer = Adam([weight], config(0.9))
    weight.grad = torch.ones(3)
    with kernels_set("fp32"):  # PyTorch's fused step does not tell
        optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        squares.backward()
