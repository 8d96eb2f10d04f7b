"""Reaches l_t: the distribution whose CDF the gates are, and hard reaches that nest."""

from __future__ import annotations

import math
from itertools import combinations

import torch
from hypothesis import given
from hypothesis import strategies as st

from prpn.config import ModelConfig
from prpn.model.attention import reach_distribution
from tests.model.cases import assert_same, configs, model_of, normal, seeds, tokens_drawn
from tests.reference import gates as twin


@given(configs(parsing=True), st.integers(1, 8), seeds)
def test_reach_breaks_the_stick_as_the_twin_does(config: ModelConfig, steps: int, seed: int) -> None:
    output = model_of(config, seed)(tokens_drawn(seed, steps, 2))
    distances, slots = output.parse.distances, config.memory_slots
    sharpness = (config.flavour, config.gates, config.temperature)
    for t in range(steps):
        alphas = twin.alpha(distances[t], distances[:t], *sharpness)  # (t, B): position −1 takes what all let through
        broken = twin.reach_distribution(alphas)  # (t + 1, B) of l_t = −1, 0, …, t − 1
        remainder = torch.ones_like(distances[t])
        if config.flavour == "released":  # keeps the factor of d_t against itself
            remainder = twin.alpha(distances[t], distances[t], *sharpness)
        expected = broken.new_zeros(slots + 1, 2)
        for position in range(-1, t):
            expected[max(0, position - (t - slots))] += remainder * broken[position + 1]
        expected[slots] = 1 - remainder
        assert_same(output.reach[t], expected.T, 1e-12, f"t = {t}")


@given(st.integers(1, 6), seeds)
def test_reach_is_a_distribution_with_the_gates_as_its_cdf(slots: int, seed: int) -> None:
    gates = normal(seed, 3, 2, slots).sigmoid().sort(-1).values
    reach = reach_distribution(gates)
    assert reach.shape == (3, 2, slots + 1)
    assert (reach >= 0).all()
    assert_same(reach.sum(-1), torch.ones(3, 2, dtype=torch.float64), 1e-14)
    assert_same(reach.cumsum(-1)[..., :-1], gates, 1e-14)


def test_reach_of_an_open_a_closed_and_a_soft_stick() -> None:
    gates = torch.tensor([[1.0, 1.0], [0.0, 0.0], [0.25, 0.75]])
    assert reach_distribution(gates).tolist() == [[1, 0, 0], [0, 0, 1], [0.25, 0.5, 0.25]]


@given(configs(parsing=True, temperature=math.inf, memory_slots=12), st.integers(2, 12), seeds)
def test_hard_reaches_never_overlap_in_part(config: ModelConfig, steps: int, seed: int) -> None:
    parse = model_of(config, seed)(tokens_drawn(seed, steps, 2)).parse
    for stream in range(2):
        distances = parse.distances[:, stream].tolist()
        starts = [0]
        for t in range(1, steps):
            gates = parse.reading_gates[t, stream, 12 - t :]  # those of positions 0 … t − 1
            assert set(gates.tolist()) <= {0.0, 1.0}
            starts.append(int(gates.argmax()))
            assert starts[t] == twin.reach_start(distances, t)
        for s, t in combinations(range(steps), 2):
            assert s <= starts[t] or starts[s] >= starts[t], (starts, s, t)
