"""The formulation that everything is compared with computes what the slow twin computes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from benchmarks import step_by_step
from prpn.config import ModelConfig
from tests.model import cases
from tests.reference import model as twin


def trainable(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k: v.clone() if k.endswith(cases.STATISTICS) else v.clone().requires_grad_() for k, v in weights.items()}


def gradients(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The gradient of every weight; zero where nothing reached it."""
    return {n: torch.zeros_like(w) if w.grad is None else w.grad for n, w in weights.items() if w.requires_grad}


def assert_relatively_same(mine: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    """Each tensor to 1e-9 of its largest number; where the truth is 0, as before a batch norm, to rounding."""
    assert mine.keys() == theirs.keys()
    rounding = 1e-12 * max(1.0, *(gradient.abs().max().item() for gradient in theirs.values()))
    for name, gradient in theirs.items():
        tolerance = 1e-9 * gradient.abs().max().item() + rounding
        torch.testing.assert_close(mine[name], gradient, rtol=0, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}")


@given(cases.configs(), cases.seeds, st.integers(2, 8), st.integers(1, 3), st.booleans())
def test_loss_gradients_statistics_and_memory_are_those_of_the_twin(
    config: ModelConfig, seed: int, steps: int, batch: int, training: bool
) -> None:
    drawn = twin.draw_weights(config, cases.VOCABULARY, cases.generator(seed))
    mine, theirs = trainable(drawn), trainable(drawn)
    memory, state = None, None
    losses = []
    for chunk in range(2):
        tokens = cases.tokens_drawn(seed + chunk, steps, batch)
        targets = tokens.flip(0).flatten()
        logits, memory = step_by_step.run(config, mine, tokens, memory, training=training)
        result = twin.run(config, theirs, tokens, state, training=training)
        state = result.state
        theirs.update(result.statistics)
        losses.append((F.cross_entropy(logits, targets), F.cross_entropy(result.logits.flatten(0, 1), targets)))
        cases.assert_same(losses[-1][0], losses[-1][1], 1e-9, "loss")
    my_loss, their_loss = (sum(pair) for pair in zip(*losses, strict=True))
    my_loss.backward()
    their_loss.backward()
    assert_relatively_same(gradients(mine), gradients(theirs))
    for name in drawn:
        if name.endswith(cases.STATISTICS):
            cases.assert_same(mine[name], theirs[name], 1e-9, name)
    for layer, tape in enumerate(state.hidden):
        cases.assert_same(memory.hidden[layer].transpose(0, 1), tape, 1e-9, "memory")
