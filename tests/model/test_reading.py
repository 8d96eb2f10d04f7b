"""One reading layer: the twin, the loop and the hand-written backward compute the same, dropout masks included."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from prpn.config import ModelConfig
from prpn.kernels.recurrence import fast_recurrence
from prpn.model.reading import Masks, ReadingLayer, Tapes, recurrence
from tests.model.cases import KERNELS, assert_same, generator, kernels_set, key_weight, normal, seeds
from tests.reference.reading import read

SITES = ("key_in", "key_out", "attention", "recurrent")
NO_MASKS = Masks(None, None, None, None)


@dataclass(frozen=True)
class Case:
    layer: ReadingLayer
    steps: int
    batch: int
    seed: int

    @property
    def slots(self) -> int:
        return self.layer.config.memory_slots

    @property
    def hidden(self) -> int:
        return self.layer.config.hidden

    def leaves(self) -> dict[str, Tensor]:
        """What a recurrence reads: inputs of the layer's gates and keys, gates (some closed, some all), past states."""
        shape = (self.steps, self.batch)
        gates = normal(self.seed + 3, *shape, self.slots).sigmoid().sort(-1).values
        gates[torch.rand(*shape, generator=generator(self.seed)) < 0.3, : self.slots // 2] = 0
        leaves = {
            "gate_inputs": normal(self.seed + 1, *shape, 4 * self.hidden),
            "key_inputs": normal(self.seed + 2, *shape, self.hidden),
            "gates": gates,
            "past_hidden": normal(self.seed + 4, self.slots, self.batch, self.hidden).tanh(),
            "past_cells": normal(self.seed + 5, self.slots, self.batch, self.hidden),
        }
        if not self.layer.config.reading_attention:
            del leaves["key_inputs"]
        return {name: leaf.requires_grad_() for name, leaf in leaves.items()}

    def masks(self, sites: frozenset[str]) -> Masks:
        """Masks at some sites, everything kept at the others."""
        shapes = {
            "key_in": (self.steps, self.batch, self.hidden),
            "key_out": (self.steps, self.batch, self.hidden),
            "attention": (self.steps, self.batch, self.slots),
            "recurrent": (self.hidden,),
        }
        numbers = generator(self.seed)
        drawn = {site: (torch.rand(shapes[site], generator=numbers) >= 0.4).double() / 0.6 for site in SITES}
        return Masks(**{site: drawn[site] if site in sites else None for site in SITES})


@st.composite
def cases(draw: st.DrawFn) -> Case:
    config = ModelConfig(
        flavour=draw(st.sampled_from(["paper", "released"])),
        embedding=draw(st.integers(1, 4)),
        hidden=draw(st.integers(3, 6)),
        memory_slots=draw(st.integers(1, 6)),
        parsing=False,
        reading_attention=draw(st.integers(0, 3)) > 0,
    )
    seed = draw(seeds)
    layer = ReadingLayer(config, first=draw(st.booleans())).double()
    with torch.no_grad():
        for number, parameter in enumerate(layer.parameters()):
            noise = normal(seed + 10 + number, *parameter.shape)
            parameter.copy_(1 + 0.3 * noise if parameter.dim() == 1 else noise / parameter.shape[1] ** 0.5)
    return Case(layer, draw(st.integers(1, 8)), draw(st.integers(1, 3)), seed)


def gradients(case: Case, tapes: Tapes, leaves: dict[str, Tensor]) -> dict[str, Tensor]:
    """∂ of a random combination of all states with respect to all leaves and parameters."""
    total = (tapes.hidden * normal(case.seed + 6, *tapes.hidden.shape)).sum()
    total = total + (tapes.cells * normal(case.seed + 7, *tapes.cells.shape)).sum()
    variables = {**leaves, **dict(case.layer.named_parameters())}
    found = torch.autograd.grad(total, list(variables.values()), allow_unused=True)
    return {
        name: torch.zeros_like(variable) if gradient is None else gradient
        for (name, variable), gradient in zip(variables.items(), found, strict=True)
    }


@settings(max_examples=100)
@given(cases(), st.frozensets(st.sampled_from(SITES)))
def test_both_recurrences_agree_under_the_same_masks(case: Case, sites: frozenset[str]) -> None:
    results = []
    for one in (recurrence, fast_recurrence):
        leaves = case.leaves()
        tapes = one(
            case.layer, **{"key_inputs": None, **leaves}, key_weight=key_weight(case.layer), masks=case.masks(sites)
        )
        results.append((tapes, gradients(case, tapes, leaves)))
    (slow, slow_gradients), (fast, fast_gradients) = results
    assert_same(fast.hidden, slow.hidden, 1e-12, "hidden")
    assert_same(fast.cells, slow.cells, 1e-12, "cells")
    assert (fast.attention is None) == (slow.attention is None) == (not case.layer.config.reading_attention)
    if slow.attention is not None:
        assert_same(fast.attention, slow.attention, 1e-12, "attention")
    for name, gradient in slow_gradients.items():
        assert_same(fast_gradients[name], gradient, 1e-9, f"gradient of {name}")


@pytest.mark.parametrize("choice", KERNELS)
@given(case=cases())
def test_a_layer_equals_the_twin(choice: str, case: Case) -> None:
    config, leaves = case.layer.config, case.leaves()
    inputs = normal(case.seed + 8, case.steps, case.batch, case.layer.input_gates.in_features)
    past_hidden, past_cells, gates = leaves["past_hidden"], leaves["past_cells"], leaves["gates"]
    with kernels_set(choice):
        tapes = case.layer(inputs, gates, past_hidden, past_cells)
    weights = {f"reading.0.{name}": p for name, p in case.layer.named_parameters()}
    hidden, cells = list(past_hidden), list(past_cells)
    for t in range(case.steps):
        h, c, attended = read(
            inputs[t], hidden[t:], cells[t:], list(gates[t].T), weights, 0, config.flavour, config.reading_attention
        )
        hidden.append(h)
        cells.append(c)
        if attended is not None:
            assert_same(tapes.attention[t], torch.stack(attended, -1), 1e-10, "attention")
    expected = Tapes(torch.stack(hidden), torch.stack(cells), None, torch.stack(hidden)[case.slots :])
    assert_same(tapes.hidden, expected.hidden, 1e-10, "hidden")
    assert_same(tapes.cells, expected.cells, 1e-10, "cells")
    leaves.pop("key_inputs", None)
    theirs = gradients(case, expected, leaves)
    for name, gradient in gradients(case, tapes, leaves).items():
        assert_same(gradient, theirs[name], 1e-8, f"gradient of {name}")


@pytest.mark.parametrize("sites", [frozenset(), frozenset(SITES)], ids=["no masks", "masks"])
@pytest.mark.parametrize("attention", [True, False], ids=["attention", "plain"])
@pytest.mark.parametrize("flavour", ["paper", "released"])
def test_gradcheck(flavour: str, attention: bool, sites: frozenset[str]) -> None:
    config = ModelConfig(
        flavour=flavour, embedding=2, hidden=3, memory_slots=2, parsing=False, reading_attention=attention
    )
    torch.manual_seed(5)
    case = Case(ReadingLayer(config, first=True).double(), steps=3, batch=2, seed=5)
    masks, leaves = case.masks(sites), case.leaves()
    names = [n for n, _ in case.layer.named_parameters() if n.startswith(("hidden", "cell", "key.weight"))]

    def states(*arguments: Tensor) -> tuple[Tensor, Tensor]:  # gradcheck moves the layer's own parameters
        given = dict(zip(leaves, arguments, strict=False))
        tapes = fast_recurrence(
            case.layer, **{"key_inputs": None, **given}, key_weight=key_weight(case.layer), masks=masks
        )
        return tapes.hidden, tapes.cells

    assert torch.autograd.gradcheck(states, (*leaves.values(), *(case.layer.get_parameter(n) for n in names)))


@given(cases(), st.sampled_from([recurrence, fast_recurrence]))
def test_closed_gates_read_nothing(case: Case, one: object) -> None:
    if not case.layer.config.reading_attention:
        return
    leaves = case.leaves()
    closed = {**leaves, "gates": torch.zeros_like(leaves["gates"])}
    first = one(case.layer, **closed, key_weight=key_weight(case.layer), masks=NO_MASKS)
    elsewhere = {**closed, "past_hidden": leaves["past_hidden"] + 1, "past_cells": leaves["past_cells"] - 1}
    second = one(case.layer, **elsewhere, key_weight=key_weight(case.layer), masks=NO_MASKS)
    assert first.hidden.isfinite().all()
    assert not first.attention.any()
    assert_same(first.hidden[case.slots :], second.hidden[case.slots :], 0)


def test_equal_units_have_a_gradient_in_both_recurrences() -> None:
    """A vector of equal numbers has no spread: the norm passes no gradient to it, and no NaN either."""
    config = ModelConfig(flavour="released", embedding=2, hidden=4, memory_slots=2, parsing=False)
    torch.manual_seed(5)
    case = Case(ReadingLayer(config, first=True).double(), steps=3, batch=2, seed=5)
    torch.nn.init.zeros_(case.layer.hidden_gates.weight)
    torch.nn.init.ones_(case.layer.hidden_gates.bias)
    for one in (recurrence, fast_recurrence):
        leaves = case.leaves()
        found = gradients(case, one(case.layer, **leaves, key_weight=key_weight(case.layer), masks=NO_MASKS), leaves)
        assert all(gradient.isfinite().all() for gradient in found.values()), one.__name__
