"""The model is written once for every floating type."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from prpn.model import PRPN
from tests.model.cases import ABLATIONS, KERNELS, SMALL, VOCABULARY, assert_same, kernels_set, model_of, tokens_drawn


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("ablation", ABLATIONS)
@pytest.mark.parametrize("flavour", ["paper", "released"])
def test_outputs_are_finite_in_every_type(flavour: str, ablation: str, dtype: torch.dtype) -> None:
    tokens = tokens_drawn(1, 9, 3)
    for gates, temperature in (("hard", 10.0), ("soft", 10.0), ("hard", math.inf)):
        config = dataclasses.replace(
            SMALL, flavour=flavour, gates=gates, temperature=temperature, dropout_recurrent=0.2, dropout_between=0.2,
            **ABLATIONS[ablation],
        )  # fmt: skip
        torch.manual_seed(1)
        model = PRPN(config, VOCABULARY).to(dtype)
        for training in (True, False):
            for kernels in KERNELS:
                model.train(training)
                with kernels_set(kernels):
                    first = model(tokens[:4])
                    output = model(tokens[4:], first.state.detach())
                    loss = model.loss(output, tokens[4:])
                loss.backward()
                assert output.features.dtype == loss.dtype == dtype
                assert {t.dtype for t in output.state.tensors().values()} == {dtype}
                assert model.logits(output).isfinite().all()
                assert loss.isfinite()
                assert all(tape.isfinite().all() for tape in output.state.hidden)
                assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("flavour", ["paper", "released"])
def test_float32_follows_float64(flavour: str, kernels: str) -> None:
    model, tokens = model_of(dataclasses.replace(SMALL, flavour=flavour)), tokens_drawn(1, 9, 3)
    with kernels_set(kernels), torch.no_grad():
        exact = model.logits(model(tokens))
        model.float()
        assert_same(model.logits(model(tokens)).double(), exact, 1e-4)


@pytest.mark.parametrize("temperature", [1e6, 1e38])
@pytest.mark.parametrize("gates", ["hard", "soft"])
@pytest.mark.parametrize("flavour", ["paper", "released"])
def test_a_huge_temperature_stays_finite(flavour: str, gates: str, temperature: float) -> None:
    torch.manual_seed(1)
    model = PRPN(dataclasses.replace(SMALL, flavour=flavour, gates=gates, temperature=temperature), VOCABULARY)
    parse = model(tokens_drawn(1, 9, 3)).parse
    assert parse.reading_gates.isfinite().all()
    assert parse.predict_gates.isfinite().all()
