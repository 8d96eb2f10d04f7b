"""`prpn generate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prpn import load
from tests.cli.command import Command, assert_refused


def test_generate(work: Path, prpn: Command) -> None:
    words = ("generate", "-m", work / "model", "--prompt", "the old", "--tokens", 20, "--seed", 4)
    result = prpn(*words)
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith("the old")
    assert result.out.rstrip("\n") == load(work / "model").generate("the old", 20, seed=4).rstrip("\n")
    assert result.out.endswith("\n")
    assert prpn(*words) == result


def test_generate_json(work: Path, prpn: Command) -> None:
    result = prpn("generate", "-m", work / "model", "--tokens", 7, "--json")
    assert (result.status, result.err, result.out.count("\n")) == (0, "", 1)
    values = json.loads(result.out)
    assert (len(values["tokens"]), values["prompt"]) == (7, "")
    again = json.loads(prpn("generate", "-m", work / "model", "--tokens", 7, "--json", "--seed", values["seed"]).out)
    assert again == values


def test_greedy(work: Path, prpn: Command) -> None:
    first, second, only = (
        prpn("generate", "-m", work / "model", "--tokens", 12, *flags).out
        for flags in (("--temperature", 0), ("--temperature", 0, "--seed", 9), ("--top-k", 1))
    )
    assert first == second == only


def test_words_of_the_prompt_that_are_unknown(work: Path, prpn: Command) -> None:
    result = prpn("generate", "-m", work / "model", "--prompt", "the zyx", "--tokens", 3)
    assert (result.status, result.err) == (0, "prpn: unknown words: zyx\n")
    assert result.out.startswith("the zyx")


@pytest.mark.parametrize(
    ("flags", "fragments"),
    [
        (("--temperature", -1), ("temperature of -1", "give")),
        (("--top-k", 0), ("0 most probable", "give")),
        (("--tokens", 0), ("0 tokens", "give")),
        (("--seed", -3), ("seed of -3", "give")),
        (("--device", "nonsense"), ("--device nonsense",)),
    ],
)
def test_refusals(flags: tuple[object, ...], fragments: tuple[str, ...], work: Path, prpn: Command) -> None:
    assert_refused(prpn("generate", "-m", work / "model", *flags), 2, *fragments)


def test_generate_from_a_missing_model(tmp_path: Path, prpn: Command) -> None:
    assert_refused(prpn("generate", "-m", tmp_path / "nowhere"), 1, "nowhere: not a model folder")
