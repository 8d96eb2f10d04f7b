"""The native recurrence equals the loop over time for any sizes, threads and masks; in bf16 it is near."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from prpn.config import ModelConfig
from prpn.kernels.native_dropout import HashedMask
from prpn.kernels.native_recurrence import HashedMasks, native_recurrence
from prpn.model.reading import Masks, Rates, ReadingLayer, Tapes, recurrence
from tests.kernels.native import assert_close, needs_native_core, threads_set
from tests.model.cases import kernels_set, key_weight

pytestmark = needs_native_core

# Below, at and above the widths of vectors (8, 16), of packed panels (16, 32) and of tiles (16, 32). Norms over fewer
# than seven numbers lose too many digits to be compared.
SIZES = st.sampled_from([7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 65])
BATCHES = st.sampled_from([1, 2, 3, 5, 6, 7, 12, 13, 25, 31, 33])

BOTH = ("hidden", "cells")
"""The tapes of which a gradient may be wanted."""


@dataclass(frozen=True)
class Case:
    layer: ReadingLayer
    leaves: dict[str, Tensor]
    masks: HashedMasks

    @property
    def variables(self) -> dict[str, Tensor]:
        """Everything with a gradient."""
        own = {n: p for n, p in self.layer.named_parameters() if not n.startswith("input_gates") and n != "key.bias"}
        return {**self.leaves, **own}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    attends = draw(st.integers(0, 3)) > 0
    config = ModelConfig(
        flavour=draw(st.sampled_from(["paper", "released"])), embedding=draw(SIZES), hidden=draw(SIZES),
        memory_slots=draw(st.sampled_from([1, 2, 7, 8, 15, 16, 17, 20, 33])), parsing=False, reading_attention=attends,
    )  # fmt: skip
    steps, batch, seed = draw(st.integers(1, 6)), draw(BATCHES), draw(st.integers(0, 2**31))
    return make_case(config, steps, batch, seed, Rates(*(draw(st.sampled_from([0.0, 0.3])) for _ in range(3))))


def make_case(config: ModelConfig, steps: int, batch: int, seed: int, rates: Rates) -> Case:
    torch.manual_seed(seed)
    layer = ReadingLayer(config, first=True)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    hidden, slots = config.hidden, config.memory_slots
    gates = torch.randn(steps, batch, slots).sigmoid().sort(-1).values
    gates[torch.rand(steps, batch) < 0.3] = 0.0
    gates[torch.rand(steps, batch) < 0.3, : slots // 2] = 0.0
    leaves = {
        "gate_inputs": torch.randn(steps, batch, 4 * hidden),
        "key_inputs": torch.randn(steps, batch, hidden),
        "gates": gates,
        "past_hidden": torch.randn(slots, batch, hidden).tanh(),
        "past_cells": torch.randn(slots, batch, hidden),
    }
    if not config.reading_attention:
        del leaves["key_inputs"]
        rates = rates._replace(key=0.0, attention=0.0)
    masks = HashedMasks.draw(rates, leaves["past_hidden"])
    return Case(layer, {name: leaf.requires_grad_() for name, leaf in leaves.items()}, masks)


def stored(masks: HashedMasks, steps: int, batch: int, hidden: int, slots: int) -> Masks:
    """The same masks as tensors."""

    def tensor(mask: HashedMask, size: int) -> Tensor | None:
        return mask.materialise(steps, batch, size) if mask.rate else None

    return Masks(
        tensor(masks.key_in, hidden), tensor(masks.key_out, hidden), tensor(masks.attention, slots), masks.recurrent
    )  # fmt: skip


def gradients(case: Case, tapes: Tapes, of: tuple[str, ...]) -> dict[str, Tensor]:
    torch.manual_seed(7)
    states = (getattr(tapes, name) for name in of)
    total = sum((state * torch.randn(state.shape)).sum() for state in states)
    found = torch.autograd.grad(total, list(case.variables.values()), allow_unused=True)
    pairs = zip(case.variables.items(), found, strict=True)
    by_name = {name: torch.zeros_like(v) if gradient is None else gradient for (name, v), gradient in pairs}
    by_name["gates"] = by_name["gates"] * (case.leaves["gates"] != 0)  # the native core passes over closed slots
    return by_name


def read(case: Case, native: bool, of: tuple[str, ...] = BOTH) -> tuple[Tapes, dict[str, Tensor]]:
    inputs = {"gate_inputs": case.leaves["gate_inputs"].clone(), "key_weight": key_weight(case.layer)}
    given_ = {"key_inputs": None, **case.leaves, **inputs}
    config, (steps, batch) = case.layer.config, case.leaves["gates"].shape[:2]
    if native:
        tapes = native_recurrence(case.layer, **given_, masks=case.masks)
    else:
        masks = stored(case.masks, steps, batch, config.hidden, config.memory_slots)
        tapes = recurrence(case.layer, **given_, masks=masks)
    return tapes, gradients(case, tapes, of)


def compare(case: Case, tolerance: float, of: tuple[str, ...]) -> None:
    slow, slow_gradients = read(case, native=False, of=of)
    fast, fast_gradients = read(case, native=True, of=of)
    assert_close(fast.hidden, slow.hidden, tolerance, "hidden")
    assert_close(fast.cells, slow.cells, tolerance, "cells")
    assert torch.equal(fast.now, fast.hidden[-len(fast.now) :])
    assert (fast.attention is None) == (slow.attention is None)
    if slow.attention is not None:
        assert_close(fast.attention, slow.attention, tolerance, "attention")
    for name, gradient in slow_gradients.items():
        assert_close(fast_gradients[name], gradient, 10 * tolerance, f"gradient of {name}")


@settings(max_examples=150)
@given(cases(), st.integers(1, 4), st.sampled_from([BOTH, BOTH[:1], BOTH[1:], ("now",), ("hidden", "now")]))
def test_the_native_recurrence_equals_the_loop(case: Case, threads: int, of: tuple[str, ...]) -> None:
    with kernels_set("fp32"), threads_set(threads):
        compare(case, 5e-5, of)


@pytest.mark.parametrize("hidden", [15, 32, 65])
@pytest.mark.parametrize("flavour", ["paper", "released"])
@pytest.mark.parametrize("attention", [True, False], ids=["attention", "plain"])
def test_in_bf16_it_is_near(attention: bool, flavour: str, hidden: int) -> None:
    """Products lose all but eight bits; whatever is not a product loses nothing."""
    config = ModelConfig(
        flavour=flavour, embedding=8, hidden=hidden, memory_slots=7, parsing=False, reading_attention=attention
    )
    case = make_case(config, steps=6, batch=13, seed=1, rates=Rates(0.0, 0.0, 0.0))
    slow, slow_gradients = read(case, native=False)
    with kernels_set("bf16"), threads_set(2):
        fast, fast_gradients = read(case, native=True)
    assert not torch.equal(fast.hidden, slow.hidden)
    assert (fast.hidden - slow.hidden).norm() < 0.02 * slow.hidden.norm()
    for name, gradient in slow_gradients.items():
        assert (fast_gradients[name] - gradient).norm() < 0.1 * gradient.norm() + 1e-3, name


@given(cases())
def test_the_number_of_threads_changes_no_state(case: Case) -> None:
    states = []
    for threads in (1, 2, 3):
        with kernels_set("fp32"), threads_set(threads):
            states.append(read(case, native=True)[0])
    assert all(torch.equal(states[0].hidden, other.hidden) for other in states[1:])
    assert all(torch.equal(states[0].cells, other.cells) for other in states[1:])


def test_backwards_once_only() -> None:
    layer = ReadingLayer(ModelConfig(embedding=4, hidden=4, memory_slots=2), first=True)
    gates, past = torch.ones(3, 2, 2), torch.zeros(2, 2, 4)
    with kernels_set("fp32"):
        hidden = layer(torch.randn(3, 2, 4), gates, past, past).hidden.sum()
        hidden.backward(retain_graph=True)
        with pytest.raises(RuntimeError, match="once only"):
            hidden.backward()


def test_memory_is_given_back_without_the_garbage_collector() -> None:
    import gc
    import weakref

    layer = ReadingLayer(ModelConfig(embedding=4, hidden=4, memory_slots=2), first=True)
    gates, past = torch.ones(3, 2, 2), torch.zeros(2, 2, 4)
    gc.disable()
    try:
        with kernels_set("fp32"):
            tapes = layer(torch.randn(3, 2, 4), gates, past, past)
        node = weakref.ref(tapes.hidden.grad_fn)
        assert node() is not None
        del tapes
        assert node() is None
    finally:
        gc.enable()
