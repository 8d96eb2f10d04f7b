"""Dropout: which rate drops what, where, and that evaluation drops nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from prpn.config import ModelConfig
from prpn.model import PRPN, reading
from prpn.model.layers import dropout, dropout_mask, dropout_of_rows, select_rows
from prpn.model.reading import ReadingLayer, Tapes
from tests.model.cases import (
    RATES,
    SMALL,
    VOCABULARY,
    assert_all_same,
    assert_same,
    configs,
    gradients_of,
    kernels_set,
    model_of,
    normal,
    numbers_of,
    seeds,
    statistics_of,
    tokens_drawn,
    without_dropout,
)

TOKENS = tokens_drawn(1, 8, 3)


@pytest.fixture(params=RATES)
def only(request: pytest.FixtureRequest) -> ModelConfig:
    """A model with one rate above zero."""
    return dataclasses.replace(SMALL, **{request.param: 0.5})


class Seen(list[tuple[Tensor, Tensor, Tensor]]):
    """Gate inputs, key inputs and hidden tape of every layer that was run."""


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    calls, real = Seen(), reading.fast_recurrence

    def watched(layer: ReadingLayer, gate_inputs: Tensor, key_inputs: Tensor, *rest: object) -> Tapes:
        tapes = real(layer, gate_inputs, key_inputs, *rest)
        calls.append((gate_inputs, key_inputs, tapes.hidden[layer.config.memory_slots :]))
        return tapes

    monkeypatch.setattr(reading, "fast_recurrence", watched)
    yield calls
    calls.clear()


def trained(config: ModelConfig) -> tuple[PRPN, dict[str, Tensor]]:
    torch.manual_seed(7)
    model = model_of(config).train()
    return model, numbers_of(model, model(TOKENS))


def test_evaluation_drops_nothing(only: ModelConfig) -> None:
    with_rate, without = model_of(only), model_of(without_dropout(only))
    assert_all_same(numbers_of(with_rate, with_rate(TOKENS)), numbers_of(without, without(TOKENS)), 0)
    output = with_rate(TOKENS)
    assert_same(with_rate.loss(output, TOKENS), without.loss(without(TOKENS), TOKENS), 0)
    layer = with_rate.reading[0]
    masks = layer.draw_masks(output.parse.reading_gates, output.state.hidden[0])
    assert dataclasses.astuple(masks) == (None,) * 4


def test_each_rate_changes_training_and_each_draw_is_new(only: ModelConfig) -> None:
    _, plain = trained(without_dropout(only))
    model, dropped = trained(only)
    assert not torch.allclose(dropped["logits"], plain["logits"])
    output = model(TOKENS)
    assert not torch.allclose(dropped["logits"], model.logits(output))
    assert not torch.equal(model.loss(output, TOKENS), model.loss(model(TOKENS), TOKENS))


# T = 8, B = 3, L = 2, E = 5, H = 6, N = 4, R = T·B = 24
PLACES = {
    "dropout_in_out": [(8, 3, 5), (24, 5)],  # input of the first layer's update; what the decoder reads
    "dropout_between": [
        (10, 3, 5),  # parsing network: embeddings …
        (24, 6),  # … and channels
        (8, 3, 5),  # first layer: what its key reads
        (8, 3, 6),  # second layer: input of its update …
        (8, 3, 6),  # … and what its key reads
        (8, 3, 6),  # predict network: what its key reads …
        (8, 3, 6),  # … and the key
        (24, 12),  # inside the residual block
        (24, 12),  # before the final linear map
    ],
    "dropout_recurrent": [],  # only inside the recurrence
    "dropout_attention": [(3, 8, 4)],  # predict attention
    "dropout_weights": [(24, 6), (24, 6)],  # hidden gates of both layers
}


@pytest.mark.parametrize("name", RATES)
def test_each_rate_drops_in_its_places(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    places, real = [], F.dropout

    def watched(x: Tensor, rate: float, training: bool) -> Tensor:
        assert rate in (0.0, 0.5)
        if training and rate:
            places.append(tuple(x.shape))
        return real(x, rate, training)

    monkeypatch.setattr(F, "dropout", watched)
    trained(dataclasses.replace(SMALL, **{name: 0.5}))
    assert sorted(places) == sorted(PLACES[name])


def test_masks_inside_the_recurrence() -> None:
    config = dataclasses.replace(SMALL, dropout_between=0.2, dropout_recurrent=0.5, dropout_attention=0.75)
    layer = ReadingLayer(config, first=True).double()
    gates, past = torch.ones(7, 3, config.memory_slots).double(), torch.ones(config.memory_slots, 3, config.hidden)
    masks = layer.draw_masks(gates, past.double())
    assert masks.key_in.shape == masks.key_out.shape == (7, 3, config.hidden)
    assert masks.attention.shape == (7, 3, config.memory_slots)
    assert masks.recurrent.shape == (config.hidden,)  # one mask a layer and chunk
    assert not torch.equal(masks.key_in, masks.key_out)
    for mask, rate in ((masks.key_in, 0.2), (masks.attention, 0.75), (masks.recurrent, 0.5)):
        assert mask.dtype == torch.float64
        assert set(mask.unique().tolist()) <= {0.0, 1 / (1 - rate)}
    torch.manual_seed(3)
    drawn = torch.stack([layer.draw_masks(gates, past).recurrent for _ in range(40)])
    assert len(drawn.unique(dim=0)) > 20
    assert set(drawn.unique().tolist()) == {0.0, 2.0}


def test_no_key_masks_without_reading_attention() -> None:
    config = dataclasses.replace(SMALL, reading_attention=False, dropout_between=0.5)
    masks = ReadingLayer(config, first=True).draw_masks(torch.ones(2, 1, 4), torch.ones(4, 1, 6))
    assert masks.key_in is None
    assert masks.key_out is None


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
def test_a_mask_keeps_its_share_and_has_mean_one(rate: float) -> None:
    torch.manual_seed(1)
    mask = dropout_mask(torch.zeros(1, dtype=torch.float64), (300, 200), rate)
    assert mask.dtype == torch.float64
    assert abs((mask == 0).double().mean() - rate) < 0.01
    assert abs(mask.mean() - 1) < 0.03


def test_parser_and_keys_do_not_see_in_out_dropout(seen: Seen) -> None:
    _, dropped = trained(dataclasses.replace(SMALL, dropout_in_out=0.5))
    (gate_inputs, key_inputs, _), _ = seen
    seen.clear()
    _, plain = trained(SMALL)
    (plain_gate_inputs, plain_key_inputs, _), _ = seen
    for name in ("scores", "distances", "next distances", "reading gates", "predict gates"):
        assert_same(dropped[name], plain[name], 0, name)
    assert_same(key_inputs, plain_key_inputs, 0, "keys")
    assert not torch.allclose(gate_inputs, plain_gate_inputs)


def test_in_out_dropout_falls_on_the_first_layer_and_before_the_decoder(seen: Seen) -> None:
    model, _ = trained(dataclasses.replace(SMALL, dropout_in_out=0.5))
    _, (second, _, _) = seen
    below = seen[0][2]
    assert_same(second, model.reading[1].input_gates(below), 1e-12)  # later layers: nothing
    torch.manual_seed(3)
    model = PRPN(dataclasses.replace(SMALL, dropout_in_out=0.5, tied=False), VOCABULARY).double().train()
    output = model(TOKENS)
    kept = model.drop(output) / output.features
    assert_same(kept.unique(), torch.tensor([0.0, 2.0]).double(), 1e-12)
    assert not torch.allclose(model.logits(output).flatten(0, 1), model.decoder(output.features))


def test_between_dropout_falls_on_later_layers_and_all_keys(seen: Seen) -> None:
    config = dataclasses.replace(SMALL, dropout_between=0.5)
    model, dropped = trained(config)
    (first, first_keys, below), (second, second_keys, _) = seen
    embeddings = model.embedding(TOKENS)
    for layer, inputs, keys in ((model.reading[0], embeddings, first_keys), (model.reading[1], below, second_keys)):
        undropped = F.linear(inputs, layer.key.weight[:, : inputs.shape[-1]], layer.key.bias)
        assert not torch.allclose(keys, undropped)
    layer = model.reading[0]
    assert_same(first, layer.input_gates(embeddings), 1e-12)  # the first layer's update: in-out only
    layer = model.reading[1]
    assert not torch.allclose(second, layer.input_gates(below))
    assert not torch.allclose(dropped["scores"], trained(without_dropout(config))[1]["scores"])


@pytest.mark.parametrize("name", ["dropout_recurrent", "dropout_attention", "dropout_weights"])
def test_other_rates_leave_parser_and_inputs_alone(name: str, seen: Seen) -> None:
    _, dropped = trained(dataclasses.replace(SMALL, layers=1, **{name: 0.5}))
    _, plain = trained(dataclasses.replace(SMALL, layers=1))
    (gate_inputs, key_inputs, hidden), (plain_gate_inputs, plain_key_inputs, plain_hidden) = seen
    assert_same(dropped["scores"], plain["scores"], 0)
    assert_same(gate_inputs, plain_gate_inputs, 0)
    assert_same(key_inputs, plain_key_inputs, 0)
    assert_same(hidden[0], plain_hidden[0], 1e-12)  # nothing to recall yet
    assert not torch.allclose(hidden[1:], plain_hidden[1:])


def test_attention_is_reported_before_it_is_dropped() -> None:
    _, numbers = trained(dataclasses.replace(SMALL, dropout_attention=0.5))
    gates, attention = numbers["reading gates"], numbers["reading attention 0"]
    assert torch.equal(attention > 0, gates > 0)
    assert_same(attention.sum(-1), torch.ones_like(attention.sum(-1)), 1e-6)
    assert torch.equal(numbers["predict attention"] > 0, numbers["predict gates"] > 0)


def test_the_recurrent_mask_is_the_same_at_every_step() -> None:
    """With one unit's weights alone, either all steps see the recalled unit or none does."""
    config = dataclasses.replace(SMALL, layers=1, dropout_recurrent=0.5)
    layer, outcomes = model_of(config).reading[0].train(), set()
    with torch.no_grad():
        layer.hidden_gates.weight[:, 1:] = 0  # only unit 0 of h̃ is read
    inputs, gates = normal(1, 6, 2, config.embedding), torch.ones(6, 2, config.memory_slots).double()
    past, shape = normal(2, config.memory_slots, 2, config.hidden), (config.memory_slots, 2, config.hidden)
    for seed in range(12):
        torch.manual_seed(seed)
        outcomes.add(round(layer(inputs, gates, past, torch.zeros(shape).double()).hidden[-1].sum().item(), 9))
    assert len(outcomes) == 2


def test_dropped_weights_are_those_of_the_gates_alone_and_new_for_each_chunk() -> None:
    layer = model_of(dataclasses.replace(SMALL, dropout_weights=0.5)).reading[0].train()
    (weight, *others), again = layer.recurrent_weights, layer.recurrent_weights
    kept = weight / layer.hidden_gates.weight
    assert_same(kept.unique(), torch.tensor([0.0, 2.0]).double(), 1e-12)
    assert not torch.equal(weight, again[0])
    assert all(one is other for one, other in zip(others, again[1:], strict=True))
    assert layer.eval().recurrent_weights[0] is layer.hidden_gates.weight


def test_a_locked_mask_is_the_same_at_every_step_and_differs_between_streams() -> None:
    mask = dropout(torch.ones(9, 4, 50), 0.4, True, locked=True)
    assert torch.equal(mask, mask[:1].expand_as(mask))
    assert len(mask[0].unique(dim=0)) == 4
    assert mask.unique().tolist() == pytest.approx([0, 1 / 0.6])
    assert not torch.equal(mask, dropout(torch.ones(9, 4, 50), 0.4, True, locked=True))


@given(seeds, st.integers(1, 5), st.integers(1, 4), st.booleans())
def test_rows_are_dropped_by_the_mask_of_their_stream(seed: int, steps: int, batch: int, padded: bool) -> None:
    torch.manual_seed(seed)
    lengths = torch.randint(1, steps + 1, (batch,)).index_fill(0, torch.tensor([0]), steps)
    mask = torch.arange(steps)[:, None] < lengths if padded else None
    rows = select_rows(torch.ones(steps, batch, 64), mask)
    kept = dropout_of_rows(rows, mask, batch, 0.5, True, locked=True)
    streams = select_rows(torch.arange(batch).expand(steps, -1), mask)
    for stream in range(batch):
        own = kept[streams == stream]
        assert torch.equal(own, own[:1].expand_as(own))
    assert len(kept.unique(dim=0)) == batch
    assert torch.equal(dropout_of_rows(rows, mask, batch, 0.5, False, locked=True), rows)


def test_locked_dropout_falls_on_what_goes_from_layer_to_layer(seen: Seen) -> None:
    """With gates that read one unit alone, a stream sees it at all steps or at none; keys are dropped at each step."""
    config = dataclasses.replace(SMALL, dropout_in_out=0.5, dropout_between=0.5, dropout_locked=True)
    model = model_of(config).train()
    model.embedding.weight.data.fill_(1.0)
    with torch.no_grad():
        for layer in model.reading:
            layer.input_gates.weight[:, 1:] = 0
    dropped = set()
    for seed in range(20):
        torch.manual_seed(seed)
        seen.clear()
        model(TOKENS)
        for layer, (gate_inputs, _, _) in zip(model.reading, seen, strict=True):
            read = (gate_inputs - layer.input_gates.bias).abs().amax(-1) > 1e-12  # (T, B)
            assert torch.equal(read, read[:1].expand_as(read))
            dropped.update(read[0].tolist())
    assert dropped == {True, False}


@settings(max_examples=25)
@given(configs(), seeds, st.lists(st.sampled_from([0.0, 0.3]), min_size=5, max_size=5), st.booleans())
def test_both_kernels_drop_the_same(config: ModelConfig, seed: int, rates: list[float], locked: bool) -> None:
    config = dataclasses.replace(config, dropout_locked=locked, **dict(zip(RATES, rates, strict=True)))
    results = []
    for choice in ("off", "autograd"):
        model = model_of(config, seed).train()
        torch.manual_seed(seed)
        with kernels_set(choice):
            output = model(TOKENS)
            loss = model.loss(output, TOKENS.roll(-1, 0))
        loss.backward()
        results.append({"loss": loss, **output.state.tensors(), **gradients_of(model), **statistics_of(model)})
    assert_all_same(*results, 1e-8)
