"""What must not matter does not: later tokens, the rest of the batch, padding, and where a stream is cut."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from prpn.config import ModelConfig
from prpn.model import PRPN
from tests.model.cases import (
    KERNELS,
    SMALL,
    VOCABULARY,
    assert_all_same,
    assert_same,
    configs,
    gradients_of,
    kernels_set,
    model_of,
    numbers_of,
    seeds,
    statistics_of,
    tokens_drawn,
)


def evaluate(model: PRPN, tokens: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
    with torch.no_grad():
        return numbers_of(model, model(tokens, None, mask), mask)


@pytest.mark.parametrize("kernels", KERNELS)
@settings(max_examples=30)
@given(config=configs(), steps=st.integers(2, 9), place=st.integers(0, 8), seed=seeds)
def test_a_later_token_changes_nothing_earlier(
    kernels: str, config: ModelConfig, steps: int, place: int, seed: int
) -> None:
    place, model, tokens = place % steps, model_of(config, seed), tokens_drawn(seed, steps, 2)
    changed = tokens.clone()
    changed[place:, 0] = (tokens[place:, 0] + 1) % VOCABULARY
    with kernels_set(kernels):
        before, after = evaluate(model, tokens), evaluate(model, changed)
    for name in before:
        assert_same(after[name][:place], before[name][:place], name=name)
        assert_same(after[name][:, 1], before[name][:, 1], name=f"{name} of the other stream")


def test_a_token_changes_what_follows_it() -> None:
    """The comparison above can see a difference."""
    model, tokens = model_of(SMALL, 1), tokens_drawn(1, 6, 2)
    changed = tokens.clone()
    changed[2, 0] = (tokens[2, 0] + 1) % VOCABULARY
    before, after = evaluate(model, tokens)["logits"], evaluate(model, changed)["logits"]
    assert all(not torch.equal(after[t, 0], before[t, 0]) for t in range(2, 6))


@settings(max_examples=30)
@given(configs(), st.integers(1, 8), st.integers(2, 4), seeds)
def test_batch_size_changes_nothing(config: ModelConfig, steps: int, batch: int, seed: int) -> None:
    model, tokens = model_of(config, seed), tokens_drawn(seed, steps, batch)
    together = evaluate(model, tokens)
    alone = [evaluate(model, column[:, None]) for column in tokens.unbind(1)]
    assert_all_same({name: torch.cat([one[name] for one in alone], 1) for name in together}, together)


@settings(max_examples=30)
@given(configs(), st.lists(st.integers(1, 8), min_size=1, max_size=4), st.integers(0, 3), seeds)
def test_padding_changes_nothing(config: ModelConfig, lengths: list[int], more: int, seed: int) -> None:
    steps = max(lengths) + more
    model, tokens = model_of(config, seed), tokens_drawn(seed, steps, len(lengths))
    mask = torch.arange(steps)[:, None] < torch.tensor(lengths)
    padded = evaluate(model, tokens, mask)
    for stream, length in enumerate(lengths):
        alone = evaluate(model, tokens[:length, stream : stream + 1])
        assert_all_same({name: numbers[:length, stream : stream + 1] for name, numbers in padded.items()}, alone)


@pytest.mark.parametrize("kernels", KERNELS)
@settings(max_examples=30)
@given(config=configs(), pieces=st.lists(st.integers(1, 5), min_size=2, max_size=4), seed=seeds)
def test_chunk_length_changes_nothing(kernels: str, config: ModelConfig, pieces: list[int], seed: int) -> None:
    pieces = [min(piece, 4) for piece in pieces]
    model, tokens = model_of(config, seed), tokens_drawn(seed, sum(pieces), 2)
    state, parts = None, []
    with kernels_set(kernels), torch.no_grad():
        for piece in tokens.split(pieces):
            output = model(piece, state)
            state = output.state
            parts.append(numbers_of(model, output))
        whole = model(tokens)
        assert_all_same(
            {name: torch.cat([part[name] for part in parts]) for name in parts[0]}, numbers_of(model, whole)
        )
    assert_all_same(state.tensors(), whole.state.tensors())


def trained(config: ModelConfig, seed: int, tokens: Tensor, targets: Tensor, mask: Tensor | None) -> dict[str, Tensor]:
    """Loss, gradients and statistics after one training step's forward and backward."""
    model = model_of(config, seed).train()
    loss = model.loss(model(tokens, None, mask), targets, mask)
    loss.backward()
    return {"loss": loss.detach(), **gradients_of(model), **statistics_of(model)}


@pytest.mark.parametrize("kernels", KERNELS)
@settings(max_examples=30)
@given(
    config=configs(),
    lengths=st.lists(st.integers(1, 7), min_size=2, max_size=4),
    more=st.integers(0, 3),
    seed=seeds,
)
def test_neither_amount_nor_content_of_padding_matters_in_training(
    kernels: str, config: ModelConfig, lengths: list[int], more: int, seed: int
) -> None:
    steps, batch = max(lengths), len(lengths)
    tokens, targets = tokens_drawn(seed, steps, batch), tokens_drawn(seed + 1, steps, batch)
    mask = torch.arange(steps)[:, None] < torch.tensor(lengths)
    garbage = torch.where(mask, tokens, (tokens + 5) % VOCABULARY)
    wrong = torch.where(mask, targets, (targets + 3) % VOCABULARY)
    extra = tokens_drawn(seed + 2, more, batch)
    with kernels_set(kernels):
        expected = trained(config, seed, tokens, targets, mask)
        assert_all_same(trained(config, seed, garbage, wrong, mask), expected)
        longer = torch.cat([mask, torch.zeros(more, batch, dtype=torch.bool)])
        assert_all_same(
            trained(config, seed, torch.cat([tokens, extra]), torch.cat([targets, extra]), longer), expected
        )
        whole = torch.ones_like(mask)
        assert_all_same(trained(config, seed, tokens, targets, whole), trained(config, seed, tokens, targets, None))


@given(configs(parsing=True), st.lists(st.integers(1, 7), min_size=2, max_size=4), seeds)
def test_statistics_are_those_of_the_rows_without_padding(config: ModelConfig, lengths: list[int], seed: int) -> None:
    steps = max(lengths)
    tokens = tokens_drawn(seed, steps, len(lengths))
    model = model_of(config, seed)
    before, rows = statistics_of(model), []
    hook = model.parsing.norm.register_forward_pre_hook(lambda _, inputs: rows.append(inputs[0]))
    with torch.no_grad():
        for stream, length in enumerate(lengths):  # each stream alone, in evaluation
            model(tokens[:length, stream : stream + 1])
    hook.remove()
    variance, mean = torch.var_mean(torch.cat(rows), dim=0)
    model.train()(tokens, None, torch.arange(steps)[:, None] < torch.tensor(lengths))
    after = statistics_of(model)
    for key, batch in (("running_mean", mean), ("running_var", variance)):
        name = f"parsing.norm.{key}"
        assert_same(after[name], 0.9 * before[name] + 0.1 * batch, name=name)
