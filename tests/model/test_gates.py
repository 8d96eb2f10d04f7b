"""Gates: the vectorised ones against the twin, their range and order, ties, and what is open before the start."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from prpn.config import ModelConfig
from prpn.model.parsing import Parse, ParsingNetwork, PlainGates, gate_factors, stick
from tests.model.cases import SMALL, assert_same, configs, flavours, kinds, normal, temperatures
from tests.reference import gates as twin

grid = st.integers(-4, 8).map(lambda n: n / 4)  # ties are common on it


def parse_of(config: ModelConfig, scores: Tensor, past_distances: Tensor) -> Parse:
    """What the network makes of given scores (T, B, 2) after given distances (N, B)."""
    network = ParsingNetwork(config).double()
    network.scores = lambda tape, mask=None: scores
    embeddings = normal(0, len(scores), scores.shape[1], config.embedding)
    past = embeddings.new_zeros(config.lookback, scores.shape[1], config.embedding)
    return network(embeddings, past, past_distances)


@st.composite
def parses(draw: st.DrawFn) -> tuple[ModelConfig, Tensor, Parse]:
    """A configuration, all distances (N + T, B), and the gates; of the past a part may lie before the start."""
    config, steps, batch = draw(configs(parsing=True)), draw(st.integers(1, 8)), draw(st.integers(1, 3))
    flat = draw(st.lists(grid, min_size=2 * steps * batch, max_size=2 * steps * batch))
    past = draw(st.lists(grid.map(abs), min_size=config.memory_slots * batch, max_size=config.memory_slots * batch))
    past_distances = torch.tensor(past, dtype=torch.float64).reshape(config.memory_slots, batch)
    past_distances[: draw(st.integers(0, config.memory_slots))] = math.inf
    scores = torch.tensor(flat, dtype=torch.float64).reshape(steps, batch, 2)
    parse = parse_of(config, scores, past_distances)
    return config, torch.cat([past_distances, parse.distances]), parse


@given(parses())
def test_gates_equal_the_twin(drawn: tuple[ModelConfig, Tensor, Parse]) -> None:
    config, distances, parse = drawn
    slots, sharpness = config.memory_slots, (config.flavour, config.gates, config.temperature)
    for t, next_distance in enumerate(parse.next_distances):
        reading = twin.reading_gates(distances, slots + t, slots, *sharpness)
        predict = twin.predict_gates(distances, next_distance, slots + t, slots, *sharpness)
        assert_same(parse.reading_gates[t], torch.stack(reading, -1), 1e-12, "reading")
        assert_same(parse.predict_gates[t], torch.stack(predict, -1), 1e-12, "predict")


@given(parses())
def test_distances_are_activated_scores(drawn: tuple[ModelConfig, Tensor, Parse]) -> None:
    config, distances, parse = drawn
    now, following = parse.scores.unbind(-1)
    activation = torch.sigmoid if config.flavour == "released" else torch.relu
    assert_same(parse.distances, activation(now), 0)
    assert_same(parse.next_distances, activation(following), 0)
    assert_same(parse.distance_tape, distances, 0)


@given(parses())
def test_gates_lie_in_the_unit_interval_and_never_fall_towards_the_present(
    drawn: tuple[ModelConfig, Tensor, Parse],
) -> None:
    config, _, parse = drawn
    for gates in (parse.reading_gates, parse.predict_gates):
        assert ((gates >= 0) & (gates <= 1)).all()
        assert (gates.diff(dim=-1) >= 0).all()
    soft_remainder = (config.flavour, config.gates) == ("released", "soft") and config.temperature < math.inf
    newest = torch.sigmoid(torch.tensor(5.0, dtype=torch.float64)) if soft_remainder else 1.0
    assert (parse.reading_gates[..., -1] == newest).all()


@given(flavours, kinds, temperatures, st.lists(grid, min_size=1, max_size=9))
def test_alpha_equals_the_twin(flavour: str, kind: str, temperature: float, differences: list[float]) -> None:
    config = dataclasses.replace(SMALL, flavour=flavour, gates=kind, temperature=temperature)
    difference = torch.tensor([*differences, 0.0, -math.inf], dtype=torch.float64)
    expected = twin.alpha(difference, torch.zeros_like(difference), flavour, kind, temperature)
    assert_same(gate_factors(difference, config), expected, 1e-12)


@pytest.mark.parametrize("kind", ["hard", "soft"])
@pytest.mark.parametrize("flavour", ["paper", "released"])
def test_a_tie_stays_open_when_infinitely_sharp(flavour: str, kind: str) -> None:
    config = dataclasses.replace(SMALL, flavour=flavour, gates=kind, temperature=math.inf, memory_slots=3)
    scores = torch.full((4, 1, 2), 0.5, dtype=torch.float64)
    parse = parse_of(config, scores, torch.full((3, 1), math.inf, dtype=torch.float64))
    seen = [[0, 0, 1], [0, 1, 1], [1, 1, 1], [1, 1, 1]]
    assert parse.reading_gates[:, 0].tolist() == seen
    assert parse.predict_gates[:, 0].tolist() == seen


@given(parses())
def test_only_the_position_before_the_start_is_open_beyond_it(drawn: tuple[ModelConfig, Tensor, Parse]) -> None:
    _, distances, parse = drawn
    slots = parse.reading_gates.shape[-1]
    for t in range(len(parse.distances)):
        unread = distances[t + 1 : t + slots].isinf().T  # a factor of +∞ after the slot closes it
        for gates in (parse.reading_gates, parse.predict_gates):
            assert not gates[t, :, :-1][unread].any()


@given(st.integers(1, 5), st.integers(0, 5), st.integers(1, 6))
def test_without_parsing_what_was_seen_is_open(slots: int, before: int, steps: int) -> None:
    past = torch.zeros(slots, 1, dtype=torch.float64)
    past[: max(0, slots - before)] = math.inf
    parse = PlainGates()(normal(0, steps, 1, 3), normal(1, 2, 1, 3), past)
    for t in range(steps):
        expected = torch.stack(twin.seen_gates(past[0], before + t, slots), -1)
        assert torch.equal(parse.reading_gates[t], expected)
        assert torch.equal(parse.predict_gates[t], expected)
    assert not parse.distances.any()


def test_the_stick_runs_from_the_newest_slot_to_the_oldest() -> None:
    factors = torch.tensor([0.5, 0.0, 0.25, 0.5], dtype=torch.float64)
    assert stick(factors).tolist() == [0.0, 0.0, 0.125, 0.5]
