"""`prpn perplexity`: figures, streams, refusals."""

from __future__ import annotations

import gzip
import json
import lzma
import math
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command, assert_refused


def test_perplexity(work: Path, prpn: Command) -> None:
    result = prpn("perplexity", work / "test.txt", "--model", work / "model")
    assert result.status == 0
    assert result.err == ""
    names = [line.split("  ")[0] for line in result.out.splitlines()]
    assert names == ["perplexity", "bits per character", "tokens", "unknown"]


def test_perplexity_json(work: Path, prpn: Command) -> None:
    result = prpn("perplexity", work / "test.txt", "-m", work / "model", "--json")
    assert (result.status, result.err, result.out.count("\n")) == (0, "", 1)
    values = json.loads(result.out)
    assert {"perplexity", "bits_per_character", "tokens", "unknown"} <= set(values)
    lines = (work / "test.txt").read_text().splitlines()
    assert values["tokens"] == sum(len(line.split()) + 1 for line in lines)
    assert values["unknown"] == 0
    assert values["characters"] == len((work / "test.txt").read_text())
    nats = math.log(values["perplexity"]) * values["tokens"]
    assert values["bits_per_character"] == pytest.approx(nats / math.log(2) / values["characters"])


def test_perplexity_counts_unknown_words(work: Path, prpn: Command) -> None:
    values = json.loads(
        prpn("perplexity", "-", "-m", work / "model", "--json", stdin=b"the zyzzyva sat\nzyx\n<unk>\n").out
    )
    assert (values["tokens"], values["unknown"]) == (8, 3)


def test_perplexity_of_any_kind_of_file(work: Path, tmp_path: Path, prpn: Command) -> None:
    content = (work / "test.txt").read_bytes()
    (tmp_path / "test.gz").write_bytes(gzip.compress(content))
    (tmp_path / "test.xz").write_bytes(lzma.compress(content))
    (tmp_path / "windows.txt").write_bytes(b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"))
    results: list[dict[str, Any]] = []
    for name in (work / "test.txt", tmp_path / "test.gz", tmp_path / "test.xz", tmp_path / "windows.txt", "-"):
        result = prpn("perplexity", name, "-m", work / "model", "--json", stdin=content)
        assert result.status == 0
        results.append(json.loads(result.out))
    assert all(result == results[0] for result in results)


def test_perplexity_without_a_line_end_at_the_end(work: Path, prpn: Command) -> None:
    with_end, without = (
        prpn("perplexity", "-", "-m", work / "model", "--json", stdin=text).out for text in (b"the man\n", b"the man")
    )
    assert json.loads(with_end) == json.loads(without)


@pytest.mark.parametrize(
    ("content", "fragments"),
    [
        (b"", ("standard input", "empty")),
        (b"\n \n", ("standard input", "no token")),
        (b"a\x00b", ("standard input:1", "not text")),
        ("caf\xe9\n".encode("latin-1"), ("standard input:1", "not UTF-8")),
    ],
    ids=["empty", "blank", "NUL", "latin-1"],
)
def test_perplexity_of_what_is_no_text(content: bytes, fragments: tuple[str, ...], work: Path, prpn: Command) -> None:
    assert_refused(prpn("perplexity", "-", "-m", work / "model", "--json", stdin=content), 1, *fragments)


def test_perplexity_of_line_ends_alone(work: Path, prpn: Command) -> None:
    """They have no characters, but no number is divided by zero."""
    found = json.loads(prpn("perplexity", "-", "-m", work / "model", "--json", stdin=b"</s>\n").out)
    assert found["tokens"] == 1
    assert found["bits_per_character"] == pytest.approx(found["loss"] / math.log(2))


def test_perplexity_of_a_missing_file(work: Path, tmp_path: Path, prpn: Command) -> None:
    assert_refused(prpn("perplexity", tmp_path / "nowhere.txt", "-m", work / "model"), 1, "nowhere.txt: no such file")


def test_perplexity_of_a_missing_model(work: Path, tmp_path: Path, prpn: Command) -> None:
    assert_refused(prpn("perplexity", work / "test.txt", "-m", tmp_path / "nowhere"), 1, "nowhere: not a model folder")


def test_perplexity_on_no_device(work: Path, prpn: Command) -> None:
    assert_refused(
        prpn("perplexity", work / "test.txt", "-m", work / "model", "--device", "nonsense"), 2, "--device nonsense"
    )


def test_the_reported_figures_are_those_of_perplexity(work: Path, tmp_path: Path, prpn: Command) -> None:
    words = ("--valid", work / "test.txt", "--out", tmp_path / "run", "--set", "training.steps=2", "--json")
    trained = json.loads(prpn("train", work / "tiny.toml", "--text", work / "text.txt", *words).out)["validation"]
    measured = json.loads(prpn("perplexity", work / "test.txt", "-m", tmp_path / "run", "--json").out)
    assert {name: measured[name] for name in trained} == pytest.approx(trained)


@pytest.mark.parametrize("damage", ["config.json", "vocabulary.json", "model.safetensors"])
@pytest.mark.parametrize("content", [None, b"", b"{}", b"[1, 2]", b"\xff\xfe"])
def test_damaged_model(damage: str, content: bytes | None, work: Path, tmp_path: Path, prpn: Command) -> None:
    for name in ("config.json", "vocabulary.json", "model.safetensors"):
        (tmp_path / name).write_bytes((work / "model" / name).read_bytes())
    if content is None:
        (tmp_path / damage).unlink()
    else:
        (tmp_path / damage).write_bytes(content)
    result = prpn("perplexity", work / "test.txt", "-m", tmp_path)
    assert_refused(result, result.status)
    assert result.status in (1, 2)
