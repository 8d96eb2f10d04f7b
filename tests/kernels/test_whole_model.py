"""The whole network on the native core against the twin that takes one step after the other, in double precision."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from prpn.config import ModelConfig
from prpn.model import PRPN
from tests.kernels.native import needs_native_core, threads_set
from tests.model.cases import RATES, kernels_set, without_dropout
from tests.reference.model import run

pytestmark = needs_native_core

VOCABULARY = 37
# A batch norm takes any constant away, so what the bias before it should get is zero and what it gets is rounding.
BEFORE_BATCH_NORM = ("parsing.convolution.bias", "predict.output.bias", "linear1.bias", "linear2.bias")


@st.composite
def configs(draw: st.DrawFn) -> ModelConfig:
    reads, predicts = draw(st.sampled_from([(True, True), (True, True), (True, False), (False, True), (False, False)]))
    return ModelConfig(
        flavour=draw(st.sampled_from(["paper", "released"])), embedding=draw(st.sampled_from([3, 8, 17])),
        hidden=draw(st.sampled_from([4, 14, 16, 34])), layers=draw(st.integers(1, 2)),
        lookback=draw(st.integers(0, 3)), memory_slots=draw(st.sampled_from([1, 3, 15, 17])),
        gates=draw(st.sampled_from(["hard", "soft"])), residual_blocks=draw(st.integers(0, 1)),
        tied=draw(st.booleans()), reading_attention=reads, predict_attention=predicts,
        parsing=reads or predicts,
    )  # fmt: skip


def model_of(config: ModelConfig, seed: int) -> PRPN:
    torch.manual_seed(seed)
    model = PRPN(without_dropout(config), VOCABULARY)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def expected_of(model: PRPN, chunks: list[Tensor], mask: Tensor | None) -> tuple[list[float], dict[str, Tensor]]:
    """Losses of chunks that follow each other, and the gradients of their sum, by the twin."""
    weights = {name: p.detach().double().requires_grad_() for name, p in model.named_parameters()}
    statistics = {name: b.double() for name, b in model.named_buffers()}
    state, losses = None, []
    for tokens in chunks:
        tied = {"decoder.weight": weights["embedding.weight"]} if model.config.tied else {}
        result = run(model.config, {**weights, **statistics, **tied}, tokens[:-1], state, True, mask)
        kept = slice(None) if mask is None else mask.flatten()
        losses.append(F.cross_entropy(result.logits.flatten(0, 1)[kept], tokens[1:].flatten()[kept]))
        state, statistics = result.state.detach(), {**statistics, **result.statistics}
    sum(losses).backward()
    return [loss.item() for loss in losses], {name: w.grad for name, w in weights.items() if w.grad is not None}


def found_by(model: PRPN, chunks: list[Tensor], mask: Tensor | None) -> tuple[list[float], dict[str, Tensor]]:
    """The same by the network itself, with the kernels in use."""
    model.train()
    model.zero_grad()
    kept = {name: buffer.clone() for name, buffer in model.named_buffers()}
    state, losses = None, []
    for tokens in chunks:
        output = model(tokens[:-1], state, mask)
        losses.append(model.loss(output, tokens[1:], mask))
        state = output.state.detach()
    sum(losses).backward()
    model.load_state_dict(kept, strict=False)
    gradients = {name: p.grad.double() for name, p in model.named_parameters() if p.grad is not None}
    return [loss.item() for loss in losses], gradients


def compare(model: PRPN, chunks: list[Tensor], mask: Tensor | None, tolerance: float) -> None:
    losses, gradients = expected_of(model, chunks, mask)
    found, found_gradients = found_by(model, chunks, mask)
    with kernels_set("autograd"):  # batch norms over few rows multiply rounding, by any way to compute them
        rounded, rounded_gradients = found_by(model, chunks, mask)
    for mine, plain, theirs in zip(found, rounded, losses, strict=True):
        assert abs(mine - theirs) <= max(tolerance * abs(theirs), 8 * abs(plain - theirs))
    largest = max(gradient.norm().item() for gradient in gradients.values())
    for name in found_gradients:
        if name in gradients and not name.endswith(BEFORE_BATCH_NORM):
            theirs = gradients[name]
            apart = (found_gradients[name] - theirs).norm().item()
            rounding = (rounded_gradients[name] - theirs).norm().item()
            # Where a gradient nearly cancels, rounding is measured by those it is made of.
            allowed = max(tolerance * max(theirs.norm().item(), 0.02 * largest), 8 * rounding)
            assert apart <= allowed, f"{name}: {apart / theirs.norm():.2g}"


@settings(max_examples=40)
@given(configs(), st.integers(0, 2**31), st.integers(1, 5), st.booleans(), st.integers(1, 3))
def test_losses_and_gradients_are_the_twins(
    config: ModelConfig, seed: int, batch: int, padded: bool, threads: int
) -> None:
    torch.manual_seed(seed)
    chunks = [torch.randint(VOCABULARY, (7, batch)) for _ in range(2)]
    mask = torch.arange(6)[:, None] < torch.randint(2, 7, (batch,)) if padded else None
    with kernels_set("fp32"), threads_set(threads):
        compare(model_of(config, seed), chunks[: 1 if padded else 2], mask, 1e-4)


@pytest.mark.parametrize("flavour", ["paper", "released"])
def test_in_bf16_they_are_near(flavour: str) -> None:
    config = ModelConfig(flavour=flavour, embedding=40, hidden=64, memory_slots=7, gates="soft", temperature=0.2)
    torch.manual_seed(1)
    chunks = [torch.randint(VOCABULARY, (12, 8)) for _ in range(2)]
    with kernels_set("bf16"):
        compare(model_of(config, 2), chunks, None, 0.05)


@settings(max_examples=20)
@given(configs(), st.integers(0, 2**31), st.sampled_from(["off", "autograd"]))
def test_evaluation_gives_the_same_losses_on_every_path(config: ModelConfig, seed: int, other: str) -> None:
    model = model_of(config, seed).eval()
    tokens = torch.randint(VOCABULARY, (9, 3))
    found = []
    for choice in ("fp32", other):
        with kernels_set(choice), torch.no_grad():
            found.append(model.token_losses(model(tokens[:-1]), tokens[1:]))
    assert torch.allclose(*found, rtol=1e-4, atol=1e-5)


def test_dropout_is_drawn_anew_and_repeats_with_the_seed() -> None:
    config = ModelConfig(flavour="released", embedding=8, hidden=16, memory_slots=3)
    torch.manual_seed(0)
    model = PRPN(dataclasses.replace(config, **dict.fromkeys(RATES, 0.3)), VOCABULARY).train()
    tokens = torch.randint(VOCABULARY, (9, 3))

    def loss() -> float:
        return model.loss(model(tokens[:-1]), tokens[1:]).item()

    with kernels_set("fp32"):
        torch.manual_seed(1)
        first = loss()
        assert loss() != first
        torch.manual_seed(1)
        assert loss() == first
