"""Predict network: its banded attention against the twin's, one time step after the other."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from prpn.config import ModelConfig
from prpn.model import predict
from prpn.model.predict import PredictNetwork, ResidualBlock
from tests.model.cases import SMALL, assert_same, configs, model_of, normal, seeds, tokens_drawn
from tests.reference.attention import structured_attention, summary
from tests.reference.norms import batch_norm


@given(st.integers(1, 8), st.integers(1, 3), st.integers(1, 6), st.integers(2, 6), seeds)
def test_summaries_equal_the_twin(steps: int, batch: int, slots: int, hidden: int, seed: int) -> None:
    config = ModelConfig(flavour="paper", embedding=3, hidden=hidden, memory_slots=slots)
    torch.manual_seed(seed)
    network = PredictNetwork(config).double()
    tape = normal(seed, slots + steps, batch, hidden).requires_grad_()
    gates = normal(seed + 1, steps, batch, slots).sigmoid()
    gates[::2, :, : slots // 2] = 0
    gates.requires_grad_()
    attention, joined = network.summarise(tape, tape[slots:], gates)
    weights, summaries = [], []
    for t in range(steps):
        window = list(tape[t : t + slots])
        weights.append(structured_attention(network.key(tape[slots + t]), window, list(gates[t].T)))
        summaries.append(summary(weights[t], window))
    expected = torch.cat([tape[slots:], torch.stack(summaries)], -1)
    assert_same(attention, torch.stack([torch.stack(w, -1) for w in weights]), 1e-12)
    assert_same(joined, expected, 1e-12)
    variables, direction = (tape, gates, *network.key.parameters()), normal(seed + 2, *joined.shape)
    mine = torch.autograd.grad(joined, variables, direction)
    for gradient, theirs in zip(mine, torch.autograd.grad(expected, variables, direction), strict=True):
        assert_same(gradient, theirs, 1e-9)


@given(st.integers(1, 5), st.integers(1, 4), seeds)
def test_closed_gates_give_a_zero_summary(steps: int, slots: int, seed: int) -> None:
    network = PredictNetwork(dataclasses.replace(SMALL, memory_slots=slots)).double()
    tape = normal(seed, slots + steps, 2, SMALL.hidden).requires_grad_()
    attention, joined = network.summarise(tape, tape[slots:], torch.zeros(steps, 2, slots, dtype=torch.float64))
    assert not attention.any()
    assert not joined[..., SMALL.hidden :].any()
    joined.sum().backward()
    assert tape.grad.isfinite().all()


@given(configs(parsing=True, predict_attention=True, temperature=math.inf), seeds)
def test_a_next_distance_below_all_others_closes_every_predict_gate(config: ModelConfig, seed: int) -> None:
    model, tokens = model_of(config, seed), tokens_drawn(seed, 6, 2)
    with torch.no_grad():
        model.parsing.heads.bias += torch.tensor([50.0, -50.0])
        output = model(tokens)
    assert not output.parse.predict_gates.any()
    assert not output.predict_attention.any()
    assert model.logits(output).isfinite().all()


@given(seeds, st.booleans())
def test_a_residual_block_is_its_equation(seed: int, training: bool) -> None:
    torch.manual_seed(seed)
    block, rows = ResidualBlock(4, dropout_rate=0.0).double().train(training), normal(seed, 5, 4)
    weights = {name: value.detach().clone() for name, value in block.state_dict().items()}

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return batch_norm(x[None], weights, name, training, None)[0][0]

    inner = torch.relu(norm(rows @ weights["linear1.weight"].T + weights["linear1.bias"], "norm1"))
    outer = norm(inner @ weights["linear2.weight"].T + weights["linear2.bias"], "norm2")
    assert_same(block(rows), torch.relu(rows + outer), 1e-12)


def test_long_sequences_are_attended_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    config = ModelConfig(flavour="paper", embedding=4, hidden=6, memory_slots=3)
    network = PredictNetwork(config).double().eval()
    tape = torch.randn(3 + 11, 2, 6, dtype=torch.float64)
    gates = torch.rand(11, 2, 3, dtype=torch.float64)
    whole = network.summarise(tape, tape[3:], gates)
    for block in (1, 2, 4, 11):
        monkeypatch.setattr(predict, "BLOCK", block)
        for part, expected in zip(network.summarise(tape, tape[3:], gates), whole, strict=True):
            torch.testing.assert_close(part, expected)
