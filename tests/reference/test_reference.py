"""The step-by-step twin against the golden vectors, against torch where it has the same, and against itself."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from prpn.config import ModelConfig
from tests.reference import golden
from tests.reference.attention import structured_attention, summary
from tests.reference.gates import alpha, predict_gates, reach_distribution, reach_start, reading_gates, seen_gates
from tests.reference.model import draw_weights, run, weight_shapes
from tests.reference.norms import batch_norm, layer_norm

STATISTICS = ("running_mean", "running_var")
VOCABULARY = 13
SMALL = ModelConfig(
    flavour="paper", embedding=5, hidden=6, layers=2, residual_blocks=1, lookback=2, memory_slots=4, temperature=1.0
)
ABLATIONS = {
    "full": {},
    "no parsing": {"parsing": False},
    "no reading attention": {"reading_attention": False},
    "no predict attention": {"predict_attention": False},
    "lstm": {"parsing": False, "reading_attention": False, "predict_attention": False},
}


def same(actual: Tensor, expected: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=0)


def trainable(weights: dict[str, Tensor], tied: bool) -> dict[str, Tensor]:
    weights = {k: v if k.endswith(STATISTICS) else v.clone().requires_grad_() for k, v in weights.items()}
    if tied:
        weights["decoder.weight"] = weights["embedding.weight"]
    return weights


def drawn(config: ModelConfig, steps: int = 9, batch: int = 3) -> tuple[dict[str, Tensor], Tensor]:
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(VOCABULARY, (steps, batch), generator=generator)
    return draw_weights(config, VOCABULARY, generator), tokens


# Golden vectors


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize("name", golden.NAMES)
def test_golden_vectors_are_reproduced(name: str, mode: str) -> None:
    case = golden.load(name)
    weights = trainable(case.weights, case.config.tied)
    state, total = None, torch.zeros((), dtype=torch.float64)
    for chunk in range(golden.CHUNKS):
        inputs, targets = case.chunk(chunk)
        result = run(case.config, weights, inputs, state, training=mode == "train")
        state = result.state.detach()
        weights.update(result.statistics)
        loss = F.cross_entropy(result.logits.flatten(0, 1), targets.flatten())
        total = total + loss
        computed = {
            "logits": result.logits,
            "loss": loss,
            "distances": result.distances.T,
            "reading_gates": result.reading_gates,
            "predict_gates": result.predict_gates,
            "predict_attention": result.predict_attention,
            **{f"reading_attention.{layer}": s for layer, s in enumerate(result.reading_attention)},
        }
        expected = case.under(f"{mode}/{chunk}")
        assert computed.keys() == expected.keys()
        for key, number in expected.items():
            same(computed[key].detach(), number, 1e-9)

    total.backward()
    gradients = case.under(f"{mode}/gradients")
    assert gradients.keys() == {k for k in weight_shapes(case.config, 1) if not k.endswith(STATISTICS)}
    for key, gradient in gradients.items():
        same(weights[key].grad, gradient, 1e-8)

    after = case.under("train/after") if mode == "train" else case.weights
    statistics = [key for key in case.weights if key.endswith(STATISTICS)]
    assert statistics == list(result.statistics)
    for key in statistics:
        same(weights[key], after[key], 1e-9)


@pytest.mark.parametrize("name", golden.NAMES)
def test_golden_weights_have_the_expected_names_and_shapes(name: str) -> None:
    case = golden.load(name)
    shapes = {key: tuple(weight.shape) for key, weight in case.weights.items()}
    if case.config.tied:
        del shapes["decoder.weight"]
    assert shapes == weight_shapes(case.config, case.weights["embedding.weight"].shape[0])


# Gates

distances_drawn = st.lists(st.floats(0, 3, allow_nan=False), min_size=2, max_size=9)
forms = st.tuples(st.sampled_from(["paper", "released"]), st.sampled_from(["hard", "soft"]))
temperatures = st.sampled_from([0.3, 1.0, 10.0, math.inf])


def column(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@settings(deadline=None, max_examples=60)
@given(distances_drawn, forms, temperatures)
def test_reach_sums_to_one_and_the_gates_are_its_cumulative_sums(
    values: list[float], form: tuple[str, str], temperature: float
) -> None:
    distances, t = column(values), len(values) - 1
    reach = reach_distribution(alpha(distances[t], distances[1:t], *form, temperature))
    assert reach.shape == (t,)
    assert (reach >= 0).all()
    same(reach.sum(), torch.ones_like(reach[0]), 1e-12)
    gates = torch.stack(reading_gates(distances, t, t, *form, temperature))
    if form[0] == "released":
        gates = gates / alpha(distances[t], distances[t], *form, temperature)
    same(gates, reach.cumsum(0), 1e-12)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 4).map(float), min_size=2, max_size=9), forms)
def test_infinitely_sharp_gates_open_from_the_reach_start_on(values: list[float], form: tuple[str, str]) -> None:
    t = len(values) - 1
    gates = reading_gates(column(values), t, t, *form, math.inf)
    assert [gate.item() for gate in gates] == [float(i >= reach_start(values, t)) for i in range(t)]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 40), min_size=2, max_size=9, unique=True), forms)
def test_gates_sharpen_towards_the_comparison(values: list[int], form: tuple[str, str]) -> None:
    distances, t = column([float(v) for v in values]), len(values) - 1
    sharp, sharpest = (torch.stack(reading_gates(distances, t, t + 3, *form, tau)) for tau in (100.0, math.inf))
    same(sharp, sharpest, 0.01)


@settings(deadline=None, max_examples=60)
@given(distances_drawn, st.floats(0, 3), forms, temperatures, st.integers(1, 12))
def test_gates_fall_towards_the_past_and_close_before_the_start(
    values: list[float], next_distance: float, form: tuple[str, str], temperature: float, slots: int
) -> None:
    distances, t = column(values), len(values) - 1
    reading = reading_gates(distances, t, slots, *form, temperature)
    predict = predict_gates(distances, column([next_distance])[0], t, slots, *form, temperature)
    for gates in (reading, predict):
        assert len(gates) == slots
        assert all(0 <= older <= newer <= 1 for older, newer in pairwise(gates))
        assert all(gate == 0 for gate in gates[: max(0, slots - t - 1)])  # position −2 and older
    assert reading[-1] == (torch.sigmoid(column([5.0])) if form == ("released", "soft") and temperature < 99 else 1)
    assert predict[-1] == alpha(column([next_distance]), distances[t], *form, temperature)


@pytest.mark.parametrize(
    ("flavour", "kind", "at_tie", "below"),
    [("paper", "hard", 0.5, 0.0), ("paper", "soft", 0.5, 0.1192), ("released", "hard", 1.0, 0.0),
     ("released", "soft", 0.9933, 0.0067)],
)  # fmt: skip
def test_alpha_at_a_tie_and_one_resolution_below(flavour: str, kind: str, at_tie: float, below: float) -> None:
    values = alpha(column([1.0, 0.9]), column([1.0, 1.0]), flavour, kind, 10.0)
    same(values, column([at_tie, below]), 1e-4)
    assert alpha(column([1.0, 0.9]), column([1.0, 1.0]), flavour, kind, math.inf).tolist() == [1.0, 0.0]


def test_without_parsing_only_states_really_seen_are_open() -> None:
    like = torch.zeros(2)
    assert [torch.stack(seen_gates(like, t, 3))[:, 0].tolist() for t in (0, 1, 5)] == [[0, 0, 0], [0, 0, 1], [1, 1, 1]]


# Attention and norms


def test_attention_with_every_gate_closed_is_zero_and_with_every_gate_open_is_a_softmax() -> None:
    generator = torch.Generator().manual_seed(1)
    tape = list(torch.randn(4, 3, 6, generator=generator, dtype=torch.float64))
    key = torch.randn(3, 6, generator=generator, dtype=torch.float64)
    closed = structured_attention(key, tape, [torch.zeros(3, dtype=torch.float64)] * 4)
    assert not torch.stack(closed).any()
    assert not summary(closed, tape).any()
    opened = structured_attention(key, tape, [torch.ones(3, dtype=torch.float64)] * 4)
    softmax = F.softmax((torch.stack(tape) * key).sum(-1) / math.sqrt(6), 0)  # (4, 3)
    same(torch.stack(opened), softmax, 1e-7)


def test_norms_agree_with_torch() -> None:
    generator = torch.Generator().manual_seed(1)
    x = 3 + 2 * torch.randn(4, 3, 6, generator=generator, dtype=torch.float64)
    keys = ("gain", "weight", "bias", *STATISTICS)
    weights = {f"n.{k}": torch.rand(6, generator=generator, dtype=torch.float64) + 0.5 for k in keys}
    gain, bias = weights["n.gain"], weights["n.bias"]
    same(layer_norm(x[0], weights, "n", "paper"), F.layer_norm(x[0], (6,), gain, bias), 1e-12)
    std, mean = torch.std_mean(x[0], -1, keepdim=True)
    same(layer_norm(x[0], weights, "n", "released"), gain * (x[0] - mean) / (std + 1e-6) + bias, 1e-12)

    mask = torch.ones(4, 3, dtype=torch.bool)
    mask[2:, 1] = False
    for training in (False, True):
        for real in (None, mask):
            running = [weights[f"n.{k}"].clone() for k in STATISTICS]
            flat = x.flatten(0, 1) if real is None else x[real]
            expected = F.batch_norm(flat, *running, weights["n.weight"], bias, training)
            output, after = batch_norm(x, weights, "n", training, real)
            same(output.flatten(0, 1) if real is None else output[real], expected, 1e-12)
            for key, value in zip(STATISTICS, running, strict=True):
                same(after[f"n.{key}"], value, 1e-12)


# The whole model: properties


@pytest.mark.parametrize("flavour", ["paper", "released"])
def test_parsing_network_is_two_convolutions(flavour: str) -> None:
    config = dataclasses.replace(SMALL, flavour=flavour)
    weights, tokens = drawn(config)
    names = ("parsing.norm.running_mean", "parsing.norm.running_var", "parsing.norm.weight", "parsing.norm.bias")
    embeddings = F.pad(weights["embedding.weight"][tokens].permute(1, 2, 0), (config.lookback, 0))  # (B, E, L + T)
    first = F.conv1d(embeddings, weights["parsing.convolution.weight"], weights["parsing.convolution.bias"])
    first = torch.relu(F.batch_norm(first, *(weights[name] for name in names)))  # (B, H, T)
    heads = weights["parsing.heads.weight"], weights["parsing.heads.bias"]
    second = F.conv1d(first, *heads, groups=config.head_groups)  # (B, 2, T)
    activated = torch.relu(second) if flavour == "paper" else torch.sigmoid(second)
    result = run(config, weights, tokens)
    same(torch.stack([result.pre_activations, result.next_pre_activations]), second.permute(1, 2, 0), 1e-12)
    same(torch.stack([result.distances, result.next_distances]), activated.permute(1, 2, 0), 1e-12)


@pytest.fixture(params=[(f, a) for f in ("paper", "released") for a in ABLATIONS], ids=" ".join)
def config(request: pytest.FixtureRequest) -> ModelConfig:
    flavour, ablation = request.param
    return dataclasses.replace(SMALL, flavour=flavour, **ABLATIONS[ablation])


def test_every_weight_is_used_and_learns(config: ModelConfig) -> None:
    weights, tokens = drawn(config)
    weights = trainable(weights, tied=False)
    result = run(config, weights, tokens, training=True)
    assert set(result.statistics) == {k for k in weights if k.endswith(STATISTICS)}
    F.cross_entropy(result.logits.flatten(0, 1), tokens.roll(-1, 0).flatten()).backward()
    for name, weight in weights.items():
        if not name.endswith(STATISTICS):
            assert weight.grad is not None, name
            assert weight.grad.isfinite().all(), name
    assert weights["embedding.weight"].grad.any()


def test_chunks_with_the_state_carried_give_what_one_run_gives(config: ModelConfig) -> None:
    weights, tokens = drawn(config)
    whole = run(config, weights, tokens)
    state, parts = None, []
    for piece in tokens.split([2, 1, 6]):
        part = run(config, weights, piece, state)
        state = part.state
        parts.append(part)
    same(torch.cat([p.logits for p in parts]), whole.logits, 1e-12)
    same(torch.cat([p.predict_gates for p in parts]), whole.predict_gates, 1e-12)
    for mine, theirs in zip((*state.hidden, *state.cell), (*whole.state.hidden, *whole.state.cell), strict=True):
        same(mine, theirs, 1e-12)
    assert state.seen == len(tokens)


def test_nothing_depends_on_later_tokens(config: ModelConfig) -> None:
    weights, tokens = drawn(config)
    changed = torch.cat([tokens[:5], (tokens[5:] + 1) % VOCABULARY])
    before, after = run(config, weights, tokens).logits, run(config, weights, changed).logits
    assert torch.equal(before[:5], after[:5])
    assert not torch.equal(before[5], after[5])


def test_padding_changes_nothing_in_training(config: ModelConfig) -> None:
    weights, tokens = drawn(config)
    lengths = torch.tensor([9, 4, 6])
    mask = torch.arange(9)[:, None] < lengths  # (T, B)
    one = run(config, weights, tokens, training=True, mask=mask)
    other = run(config, weights, torch.where(mask, tokens, (tokens + 5) % VOCABULARY), training=True, mask=mask)
    same(one.logits[mask], other.logits[mask], 1e-12)
    for key in one.statistics:
        same(one.statistics[key], other.statistics[key], 1e-12)


def test_infinite_temperature_and_no_lookback_stay_finite(config: ModelConfig) -> None:
    config = dataclasses.replace(config, temperature=math.inf, lookback=0)
    weights, tokens = drawn(config)
    result = run(config, weights, tokens)
    assert result.logits.isfinite().all()
    assert set(result.reading_gates.unique().tolist()) <= {0.0, 1.0}
    assert result.state.embeddings.shape == (0, 3, 5)


def test_weights_are_left_alone(config: ModelConfig) -> None:
    weights, tokens = drawn(config)
    copies = {key: weight.clone() for key, weight in weights.items()}
    run(config, weights, tokens, training=True)
    assert all(torch.equal(weights[key], copy) for key, copy in copies.items())


def test_float32_follows_float64(config: ModelConfig) -> None:
    weights, tokens = drawn(config)
    exact = run(config, weights, tokens).logits
    rough = run(config, {key: weight.float() for key, weight in weights.items()}, tokens).logits
    assert rough.dtype == torch.float32
    same(rough.double(), exact, 1e-3)
