"""`prpn temperature`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
