"""The carried state: cutting, choosing, storing, converting."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from safetensors.torch import load_file, save_file

from prpn.config import ModelConfig
from prpn.model import State
from tests.model.cases import ABLATIONS, SMALL, assert_all_same, configs, model_of, numbers_of, seeds, tokens_drawn


@pytest.fixture(params=ABLATIONS)
def state(request: pytest.FixtureRequest) -> State:
    config = dataclasses.replace(SMALL, **ABLATIONS[request.param])
    return model_of(config)(tokens_drawn(1, 3, 4)).state  # one slot still lies before the start


@given(configs())
def test_before_the_start_all_is_zero_and_infinitely_far(config: ModelConfig) -> None:
    state = State.zero(config, 3, torch.zeros(1, dtype=torch.float64))
    slots = config.memory_slots
    assert state.distances.shape == (slots, 3)
    assert state.distances.isposinf().all()
    assert state.embeddings.shape == (config.lookback, 3, config.embedding)
    for tapes in (state.hidden, state.cells):
        assert [tape.shape for tape in tapes] == [(slots, 3, config.hidden)] * config.layers
    assert not any(tensor.any() for tensor in (state.embeddings, *state.hidden, *state.cells))
    assert {tensor.dtype for tensor in state.tensors().values()} == {torch.float64}
    assert state.batch == 3


@settings(max_examples=20)
@given(configs(), seeds)
def test_the_zero_state_is_the_beginning(config: ModelConfig, seed: int) -> None:
    model, tokens = model_of(config, seed), tokens_drawn(seed, 3, 2)
    zero = State.zero(config, 2, torch.zeros((), dtype=torch.float64))
    assert_all_same(numbers_of(model, model(tokens, zero)), numbers_of(model, model(tokens)), 0)


def test_detached_state_has_the_values_and_no_history(state: State) -> None:
    assert all(tape.requires_grad for tape in state.hidden)
    assert state.embeddings.requires_grad
    cut = state.detach()
    assert_all_same(cut.tensors(), state.tensors(), 0)
    assert not any(tensor.requires_grad for tensor in cut.tensors().values())


@pytest.mark.parametrize(
    "columns",
    [slice(1, 3), slice(None), slice(0, 1), torch.tensor([3, 0]), torch.tensor([2, 2, 1]),
     torch.tensor([True, False, False, True])],
    ids=str,
)  # fmt: skip
def test_the_state_of_some_streams_is_their_own_state(state: State, columns: slice | torch.Tensor) -> None:
    chosen = state.select(columns)
    assert chosen.batch == len(torch.arange(4)[columns])
    before, after = state.tensors(), chosen.tensors()
    for field in before:
        index = (..., columns) if field == "distances" else (..., columns, slice(None))
        assert torch.equal(after[field], before[field][index]), field


@settings(max_examples=20)
@given(configs(), seeds)
def test_reading_on_from_a_part_of_the_state(config: ModelConfig, seed: int) -> None:
    model, tokens, columns = model_of(config, seed), tokens_drawn(seed, 7, 4), torch.tensor([3, 1])
    first, part = model(tokens[:3]), model(tokens[:3, columns])
    assert_all_same(first.state.select(columns).tensors(), part.state.tensors())
    whole = numbers_of(model, model(tokens[3:], first.state))
    again = numbers_of(model, model(tokens[3:, columns], first.state.select(columns)))
    assert_all_same(again, {name: numbers[:, columns] for name, numbers in whole.items()})


@pytest.mark.parametrize("columns", [None, slice(0, 2), torch.tensor([2, 0])], ids=str)
def test_through_a_file(state: State, columns: slice | torch.Tensor | None, tmp_path: Path) -> None:
    state = state.detach() if columns is None else state.detach().select(columns)
    save_file(state.tensors("carried."), tmp_path / "state.safetensors")
    loaded = load_file(tmp_path / "state.safetensors")
    assert set(loaded) == {"carried.embeddings", "carried.distances", "carried.hidden", "carried.cells"}
    assert_all_same(State.from_tensors(loaded, "carried.").tensors(), state.tensors(), 0)


@pytest.mark.parametrize("lookback", [0, 2])
def test_the_zero_state_through_a_file(lookback: int, tmp_path: Path) -> None:
    zero = State.zero(dataclasses.replace(SMALL, lookback=lookback), 2, torch.zeros(()))
    save_file(zero.tensors(), tmp_path / "state.safetensors")
    assert_all_same(State.from_tensors(load_file(tmp_path / "state.safetensors")).tensors(), zero.tensors(), 0)


def test_in_another_type(state: State) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        other = state.to(dtype)
        assert {tensor.dtype for tensor in other.tensors().values()} == {dtype}
        assert_all_same(other.tensors(), {name: tensor.to(dtype) for name, tensor in state.tensors().items()}, 0)
    assert_all_same(state.to(torch.device("cpu")).tensors(), state.tensors(), 0)
