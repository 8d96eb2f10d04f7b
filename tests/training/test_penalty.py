"""Penalties on hidden states, against the sums written out."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from prpn.api.model import load
from prpn.training.penalty import penalty

from .tiny import metrics, recipe, run, write_text


@given(st.integers(0, 99), st.integers(1, 5), st.integers(1, 3), st.booleans())
def test_against_the_sums(seed: int, steps: int, batch: int, padded: bool) -> None:
    torch.manual_seed(seed)
    hidden = torch.randn(steps, batch, 4, dtype=torch.float64)
    lengths = torch.randint(0, steps + 1, (batch,)) if padded else torch.full((batch,), steps)
    mask = torch.arange(steps)[:, None] < lengths if padded else None
    squares = [hidden[t, b, j].item() ** 2 for b in range(batch) for t in range(int(lengths[b])) for j in range(4)]
    changes = [
        (hidden[t, b, j] - hidden[t - 1, b, j]).item() ** 2
        for b in range(batch)
        for t in range(1, int(lengths[b]))
        for j in range(4)
    ]
    expected = 2 * sum(squares) / max(1, len(squares)) + 3 * sum(changes) / max(1, len(changes))
    config = recipe("training.activity_penalty=2", "training.change_penalty=3").training
    assert float(penalty(hidden, mask, config)) == pytest.approx(expected, rel=1e-12)


def test_without_penalties_nothing_is_added() -> None:
    assert penalty(torch.ones(3, 2, 4), None, recipe().training) == 0.0


def test_penalties_quiet_the_states_and_are_not_shown(tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt")
    squares, changes = {}, {}
    for name, assignments in {
        "free": (),
        "small": ("training.activity_penalty=1000",),
        "slow": ("training.change_penalty=1000",),
    }.items():
        run(tmp_path / name, text, *assignments)
        assert metrics(tmp_path / name)[-1]["training_loss"] < 2 * math.log(16)  # of the words alone
        model = load(tmp_path / name)
        ids = model.encode_file(str(text)).ids.astype(int)
        with torch.no_grad():
            hidden = model.network(torch.from_numpy(ids)[:, None]).hidden
        squares[name], changes[name] = hidden.square().mean(), hidden.diff(dim=0).square().mean()
    assert squares["small"] < 0.8 * squares["free"]
    assert changes["slow"] < 0.8 * changes["free"]
