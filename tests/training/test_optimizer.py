"""The optimiser is PyTorch's Adam, to the last bit unless it clips, with less memory where it has no first moment."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import Parameter
from torch.nn.utils import clip_grad_norm_

from prpn.config import TrainingConfig
from prpn.training.checkpoint import load_optimizer, optimizer_tensors
from prpn.training.optimizer import Adam


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


@pytest.mark.parametrize("beta1", [0.0, 0.9])
def test_it_moves_as_pytorchs_adam(beta1: float) -> None:
    ours, theirs = parameters(), parameters()
    optimizer, reference = Adam(ours, config(beta1)), pytorch(theirs, config(beta1))
    for seed in range(6):
        step(optimizer, ours, seed)
        step(reference, theirs, seed)
        assert_equal(ours, theirs)


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
        assert_equal(ours, theirs)


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
    assert_equal(ours, theirs)
