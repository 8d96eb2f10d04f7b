"""`prpn temperature`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from prpn.training.checkpoint import read_tensors, write_tensors
from tests.cli.command import Command, assert_refused


def test_temperature(work: Path, prpn: Command) -> None:
    words = ("temperature", work / "test.txt", "-m", work / "model", "--tau", "0.5", "--tau", "10", "--tau", "inf")
    values = json.loads(prpn(*words, "--json").out)
    rows = values["temperatures"]
    assert [row["temperature"] for row in rows] == [0.5, 10.0, "inf"]
    assert rows[-1]["overlapping"] == 0
    trained = json.loads(prpn("perplexity", work / "test.txt", "-m", work / "model", "--json").out)
    assert values["trained_at"] == 10.0
    assert rows[1]["perplexity"] == pytest.approx(trained["perplexity"], rel=1e-6)
    result = prpn(*words)
    assert (result.status, result.err) == (0, "")
    lines = [line.split() for line in result.out.splitlines()]
    assert lines[0] == ["τ", "perplexity", "levels", "reach", "overlapping"]
    assert [line[0] for line in lines[1:4]] == ["0.5", "10*", "inf"]
    assert lines[2][1] == f"{rows[1]['perplexity']:.2f}"


def test_all_temperatures_and_standard_input(work: Path, prpn: Command) -> None:
    text = (work / "test.txt").read_bytes()
    rows = json.loads(prpn("temperature", "-", "-m", work / "model", "--json", stdin=text).out)["temperatures"]
    assert [row["temperature"] for row in rows] == [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, "inf"]


@pytest.mark.parametrize(("tau", "words"), [("0", "positive"), ("-1", "positive"), ("hot", "hot"), ("nan", "positive")])
def test_other_temperatures_are_refused(tau: str, words: str, work: Path, prpn: Command) -> None:
    assert_refused(prpn("temperature", work / "test.txt", "-m", work / "model", "--tau", tau), 2, "--tau", words)


def test_a_line_of_two_words_is_needed(work: Path, prpn: Command) -> None:
    result = prpn("temperature", "-", "-m", work / "model", stdin=b"the\nman\n")
    assert_refused(result, 1, "standard input: no line has two words")


def test_the_gates_are_those_that_the_model_reads_by(work: Path, tmp_path: Path, prpn: Command) -> None:
    """A student that came with the model has distances of its own."""
    taught = tmp_path / "taught"
    shutil.copytree(work / "model", taught)
    tensors, header = read_tensors(taught / "model.safetensors")
    student = {name: each for name, each in tensors.items() if name.startswith(("embedding.", "parsing."))}
    student["parsing.convolution.weight"] = -student["parsing.convolution.weight"]
    write_tensors(taught / "parser.safetensors", student, header)
    models = (work / "model", taught)
    assert len({prpn("parse", work / "test.txt", "-m", model).out for model in models}) == 2
    rows = [prpn("temperature", work / "test.txt", "-m", model, "--tau", "inf", "--json").out for model in models]
    assert json.loads(rows[0])["temperatures"] == json.loads(rows[1])["temperatures"]
