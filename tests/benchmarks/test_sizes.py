"""The count of multiply-adds against what PyTorch counts, and the published ratios to an LSTM."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import step_by_step
from benchmarks.contenders import Lstm
from benchmarks.sizes import SIZES, Size
from prpn.model import PRPN

TINY = SIZES["tiny"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"residual_blocks": 1, "tied": False, "layers": 3},
        {"reading_attention": False},
        {"predict_attention": False},
        {"parsing": False},
        {"flavour": "paper"},
    ],
    ids=str,
)
def test_multiply_adds_are_those_pytorch_counts(changes: dict[str, object]) -> None:
    size = dataclasses.replace(TINY, config=dataclasses.replace(TINY.config, **changes))
    weights = step_by_step.weights_of(PRPN(size.config, size.vocabulary))
    tokens = torch.randint(size.vocabulary, (size.steps, size.batch))
    with FlopCounterMode(display=False) as counter:
        step_by_step.run(size.config, weights, tokens)
    assert counter.get_total_flops() == 2 * size.tokens * size.multiply_adds


def test_multiply_adds_of_the_lstm_are_its_weights_and_products() -> None:
    lstm = Lstm(TINY)
    products = [w for module in (lstm.lstm, lstm.output, lstm.decoder) for w in module.parameters() if w.dim() == 2]
    assert TINY.lstm_multiply_adds == sum(weight.numel() for weight in products)


@pytest.mark.parametrize(("name", "ratio"), [("parsing", 1.31), ("ptb-word", 1.45), ("ptb-char", 2.09)])
def test_prpn_needs_more_than_an_lstm(name: str, ratio: float) -> None:
    size: Size = SIZES[name]
    assert round(size.multiply_adds / size.lstm_multiply_adds, 2) == ratio
