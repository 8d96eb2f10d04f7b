"""A student against its equations, alone and in company, as trained and as folded for parsing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prpn.config import Builder
from prpn.distillation import Student, splitting_loss
from prpn.distillation.student import gap_scores
from prpn.parsing.folded import Folded
from prpn.trees import build
from prpn.trees.from_distances import LEANING
from tests.reference import distillation as reference

VOCABULARY, START = 9, 1
sentences = st.lists(st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=9), min_size=1, max_size=5)


def student(seed: int, lookback: int, lookahead: int) -> Student:
    torch.manual_seed(seed)
    made = Student(torch.randn(VOCABULARY, 5), 7, lookback, lookahead, dropout=0.5).double().eval()
    with torch.no_grad():
        for name, tensor in made.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(torch.rand_like(tensor) + 0.1 if name.endswith("var") else torch.randn_like(tensor))
    return made


def padded(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(map(len, rows))
    mask = torch.tensor([[t < len(row) for t in range(width)] for row in rows])
    return torch.tensor([row + [3] * (width - len(row)) for row in rows]), mask


@settings(max_examples=50)
@given(st.integers(0, 99), st.integers(0, 4), st.integers(0, 4), sentences)
def test_scores_are_those_of_a_loop_whatever_stands_beside(
    seed: int, lookback: int, lookahead: int, rows: list[list[int]]
) -> None:
    made = student(seed, lookback, lookahead)
    ids, mask = padded(rows)
    with torch.no_grad():
        found = made(ids, START, mask)
    for row, scores, real in zip(rows, found, mask, strict=True):
        assert scores[real].tolist() == pytest.approx(reference.scores(made, row, START), rel=1e-9, abs=1e-9)
        assert (scores[~real] == 0).all()


@settings(max_examples=50)
@given(st.integers(0, 99), st.integers(0, 4), st.integers(0, 4), sentences)
def test_what_is_folded_for_parsing_scores_the_same(
    seed: int, lookback: int, lookahead: int, rows: list[list[int]]
) -> None:
    made = student(seed, lookback, lookahead)
    weights = {name: tensor.float().numpy() for name, tensor in made.state_dict().items()}
    folded = Folded(weights, START, lookahead)
    words = np.array([word for row in rows for word in row], dtype=np.int32)
    found = folded.scores(words, np.cumsum([len(row) for row in rows]))
    expected = [score for row in rows for score in reference.scores(made, row, START)]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@given(st.integers(0, 99), sentences)
def test_the_loss_is_the_mean_over_pairs(seed: int, rows: list[list[int]]) -> None:
    torch.manual_seed(seed)
    heights, mask = padded(rows)
    scores = torch.randn(mask.shape, dtype=torch.float64)
    lists = [[row[real].tolist() for row, real in zip(x, mask, strict=True)] for x in (scores, heights)]
    assert float(splitting_loss(scores, heights, mask)) == pytest.approx(reference.splitting_loss(*lists), rel=1e-9)


def test_the_right_order_costs_less_than_the_wrong_one() -> None:
    heights, mask = torch.tensor([[9.0, 1.0, 3.0, 2.0]]), torch.ones(1, 4, dtype=torch.bool)
    right, wrong = (splitting_loss(sign * 5 * heights, heights, mask) for sign in (1, -1))
    assert right < 0.01 < 5 < wrong


@given(st.integers(0, 99), sentences, st.sampled_from(LEANING))
def test_what_is_taught_is_what_the_builder_reads(seed: int, rows: list[list[int]], builder: Builder) -> None:
    torch.manual_seed(seed)
    _, mask = padded(rows)
    scores = torch.randn(mask.shape, dtype=torch.float64)
    for row, own, gaps in zip(rows, scores, gap_scores(scores, mask, builder), strict=True):
        words = ["x"] * len(row)
        found = build(words, gaps[: len(row)].tolist(), "unbiased")
        assert found.spans() == build(words, own[: len(row)].tolist(), builder).spans()


def test_it_begins_with_an_embedding() -> None:
    embedding = 3 * torch.randn(VOCABULARY, 5)
    made = Student(embedding, 7, 1, 1, dropout=0.0)
    torch.testing.assert_close(made.embedding.weight.detach(), embedding / embedding.std())
    assert made.embedding.weight.requires_grad
