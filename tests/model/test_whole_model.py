"""The model against its step-by-step twin: everything it computes, and the gradient of every parameter."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from prpn.config import ModelConfig
from prpn.model import PRPN, Output
from tests.model.cases import (
    ABLATIONS,
    KERNELS,
    SMALL,
    STATISTICS,
    VOCABULARY,
    assert_same,
    configs,
    generator,
    gradients_of,
    kernels_set,
    load,
    numbers_of,
    seeds,
    statistics_of,
    tokens_drawn,
)
from tests.reference.model import Result, draw_weights, run, weight_shapes


@dataclass(frozen=True)
class Case:
    config: ModelConfig
    chunks: tuple[int, ...]
    lengths: tuple[int, ...] | None
    """Real tokens per stream in the last chunk; none: no mask."""
    batch: int
    training: bool
    seed: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    training, batch = draw(st.booleans()), draw(st.integers(1, 3))
    shortest = 2 if training and batch == 1 else 1  # a batch norm needs two rows
    chunks = tuple(draw(st.lists(st.integers(shortest, 6), min_size=2, max_size=2)))
    lengths = None
    if draw(st.booleans()):
        some = st.lists(st.integers(shortest, chunks[-1]), min_size=batch, max_size=batch)
        lengths = tuple(draw(some))
    return Case(draw(configs()), chunks, lengths, batch, training, draw(seeds))


def compare(case: Case, kernels: str) -> None:
    config = case.config
    weights = draw_weights(config, VOCABULARY, generator(case.seed))
    model = PRPN(config, VOCABULARY).double().train(case.training)
    load(model, weights)
    weights = {k: v if k.endswith(STATISTICS) else v.clone().requires_grad_() for k, v in weights.items()}
    text = tokens_drawn(case.seed, sum(case.chunks) + 1, case.batch)
    start, state, twin_state = 0, None, None
    total, twin_total = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    with kernels_set(kernels):
        for number, steps in enumerate(case.chunks):
            tokens, targets = text[start : start + steps], text[start + 1 : start + steps + 1]
            mask, real = None, torch.ones_like(tokens, dtype=torch.bool)
            if case.lengths is not None and number == len(case.chunks) - 1:
                mask = real = torch.arange(steps)[:, None] < torch.tensor(case.lengths)
            output = model(tokens, state, mask)
            twin = run(config, weights, tokens, twin_state, case.training, mask)
            compare_chunk(model, output, twin, mask, real)
            total = total + model.loss(output, targets, mask)
            twin_total = twin_total + F.cross_entropy(twin.logits[real], targets[real])
            state, twin_state = output.state.detach(), twin.state.detach()
            weights.update(twin.statistics)
            start += steps
        for name, numbers in statistics_of(model).items():
            assert_same(numbers, weights[name], name=name)
        assert_same(total, twin_total, name="loss")
        total.backward()
    twin_total.backward()
    for name, gradient in gradients_of(model).items():
        twin_gradient = weights[name].grad
        expected = torch.zeros_like(gradient) if twin_gradient is None else twin_gradient
        assert_same(gradient, expected, 1e-8, f"gradient of {name}")


def compare_chunk(model: PRPN, output: Output, twin: Result, mask: Tensor | None, real: Tensor) -> None:
    mine = numbers_of(model, output, mask)
    expected = {
        "logits": twin.logits,
        "reading gates": twin.reading_gates,
        "predict gates": twin.predict_gates,
        **{f"reading attention {j}": a for j, a in enumerate(twin.reading_attention)},
    }
    if model.config.parsing:
        expected["distances"], expected["next distances"] = twin.distances, twin.next_distances
        expected["scores"] = torch.stack([twin.pre_activations, twin.next_pre_activations], -1)
    if model.config.predict_attention:
        expected["predict attention"] = twin.predict_attention
    assert mine.keys() - expected.keys() <= {"reach", "distances", "next distances", "scores"}
    for name, numbers in expected.items():
        assert_same(mine[name][real], numbers[real], name=name)
    assert not mine["logits"][~real].any()
    whole = real.all(0)  # streams without padding: what follows padding means nothing
    state = output.state.select(whole)
    assert_same(state.embeddings, twin.state.embeddings[:, whole], name="state embeddings")
    assert_same(torch.stack(state.hidden), torch.stack(twin.state.hidden)[:, :, whole], name="state hidden")
    assert_same(torch.stack(state.cells), torch.stack(twin.state.cell)[:, :, whole], name="state cells")
    if model.config.parsing:
        assert_same(state.distances, twin.state.distances[:, whole], name="state distances")


@pytest.mark.parametrize("kernels", KERNELS)
@settings(max_examples=60)
@given(case=cases())
def test_everything_equals_the_twin(kernels: str, case: Case) -> None:
    compare(case, kernels)


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize("ablation", ABLATIONS)
@pytest.mark.parametrize("flavour", ["paper", "released"])
def test_every_ablation_equals_the_twin(flavour: str, ablation: str, training: bool) -> None:
    config = dataclasses.replace(SMALL, flavour=flavour, **ABLATIONS[ablation])
    compare(Case(config, (4, 7), (7, 3, 1), 3, training, seed=3), "off")


@given(configs())
def test_parameters_are_those_of_the_twin(config: ModelConfig) -> None:
    model = PRPN(config, VOCABULARY)
    mine = {n: tuple(p.shape) for n, p in [*model.named_parameters(), *statistics_of(model).items()]}
    assert mine == weight_shapes(config, VOCABULARY)
    assert (model.decoder.weight is model.embedding.weight) == config.tied


def test_a_new_model_starts_as_the_released_one() -> None:
    model = PRPN(dataclasses.replace(SMALL, tied=False), 500)
    for table in (model.embedding.weight, model.decoder.weight):
        assert 0.0099 < table.abs().max() <= 0.01
        assert abs(table.mean()) < 1e-3
    assert not model.decoder.bias.any()
