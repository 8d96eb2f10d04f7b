"""Pairs of lines, against each line scored by itself."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from prpn.errors import InputError
from prpn.language.minimal_pairs import Pair, compare, comparison_of, read_sides
from prpn.text.tokenizer import Tokenizer
from tests.language.models import KINDS, model_of
from tests.training.tiny import sentences


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_costs_what_it_costs_alone(kind: str) -> None:
    model = model_of(*KINDS[kind])
    lines = sentences(90).splitlines()
    first, second = lines[:45], lines[45:]
    tokenizer = Tokenizer(model.recipe.text)
    closed = ["</s>"] if model.recipe.text.line_ends else []
    sides = [[[*tokenizer.tokens(line), *closed] for line in side] for side in (first, second)]
    pairs = list(compare(model.network, model.vocabulary, sides))
    assert [pair.line for pair in pairs] == list(range(1, 46))
    for pair, one, other in zip(pairs, first, second, strict=True):
        costs = [math.fsum(token.bits for token in model.surprisal(line)) for line in (one, other)]
        assert [pair.first, pair.second] == pytest.approx(costs)
        assert pair.lower == ("first" if costs[0] < costs[1] else "second")


def test_what_the_model_cannot_tell_apart_is_a_tie() -> None:
    model = model_of(precise=False)
    sides = [[["the", word, "sat", "</s>"]] * 40 for word in ("zyx", "zyzzyva")]
    pairs = list(compare(model.network, model.vocabulary, sides))
    assert all((pair.lower, pair.unknown) == ("tie", (1, 1)) for pair in pairs)


def test_summary() -> None:
    pairs = [Pair(1, 2.0, 5.0, (0, 0)), Pair(2, 4.0, 3.0, (0, 1)), Pair(3, 1.0, 1.0, (1, 1)), Pair(4, 1.0, 3.0, (0, 0))]
    result = comparison_of(pairs)
    assert (result.pairs, result.first, result.second, result.ties, result.with_unknown) == (4, 2, 1, 1, 2)
    assert (result.share, result.mean_difference) == (0.5, 1.0)


def test_lines_are_closed_once(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("the man </s>\nthe dog\n")
    (tmp_path / "other.txt").write_text("the man\nthe dog <eos>")
    first, second = read_sides(
        [str(tmp_path / name) for name in ("one.txt", "other.txt")], Tokenizer(model_of().recipe.text)
    )
    assert first == second == [["the", "man", "</s>"], ["the", "dog", "</s>"]]


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (b"a\nb\n", b"a\n", r"one\.txt: 2 lines, but .*other\.txt has 1; a pair is the same line of both"),
        (b"", b"", r"one\.txt: the input is empty"),
        (b"a\n\nb\n", b"a\na\na\n", r"one\.txt:2: no token in this line"),
        (b"a\nb\n", b"a\n\xff\n", r"other\.txt:2: not UTF-8"),
    ],
    ids=["counts", "empty", "blank", "not text"],
)
def test_refusals(one: bytes, other: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_bytes(one)
    (tmp_path / "other.txt").write_bytes(other)
    with pytest.raises(InputError, match=message):
        read_sides([str(tmp_path / name) for name in ("one.txt", "other.txt")], Tokenizer(model_of().recipe.text))


def test_standard_input_is_one_side_only() -> None:
    with pytest.raises(InputError, match="can be read only once"):
        read_sides(["-", "-"], Tokenizer(model_of().recipe.text))
