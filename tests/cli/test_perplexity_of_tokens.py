"""`prpn perplexity` with a cache, token by token, and of pairs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.cli.command import Command, assert_refused
from tests.training.tiny import run, write_text


@pytest.fixture
def model(work: Path, tmp_path: Path) -> Path:
    """The model in a folder that a cache may be saved in."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("config.json", "vocabulary.json", "model.safetensors"):
        (folder / name).write_bytes((work / "model" / name).read_bytes())
    return folder


def test_a_cache_is_tuned_once_and_used_after(work: Path, model: Path, prpn: Command) -> None:
    words = ("perplexity", work / "text.txt", "-m", model, "--cache", "--json")
    assert_refused(prpn(*words), 1, "mine: has no cache yet", f"prpn perplexity VALID --model {model} --cache --tune")
    tuned = json.loads(prpn(*words, "--tune").out)
    plain = json.loads(prpn("perplexity", work / "text.txt", "-m", model, "--json").out)
    assert tuned["without_cache"] == pytest.approx({name: plain[name] for name in tuned["without_cache"]})
    assert tuned["perplexity"] <= plain["perplexity"] * (1 + 1e-9)
    saved = json.loads((model / "cache.json").read_text())
    assert {name: saved[name] for name in ("size", "theta", "lambda")} == tuned["cache"]
    assert saved["tuned_on"]["tokens"] == tuned["tokens"]
    assert len(saved["tuned_on"]["sha256"]) == 64
    assert (saved["perplexity"], saved["perplexity_without_cache"]) == (
        tuned["perplexity"],
        tuned["without_cache"]["perplexity"],
    )
    used = json.loads(prpn(*words).out)
    assert used["cache"] == tuned["cache"]
    assert (used["perplexity"], used["loss"]) == pytest.approx((tuned["perplexity"], tuned["loss"]), rel=1e-5)


def test_what_a_cache_brings(work: Path, model: Path, prpn: Command) -> None:
    (model / "cache.json").write_text(json.dumps({"size": 100, "theta": 0.1, "lambda": 0.25}))
    result = prpn("perplexity", work / "test.txt", "-m", model, "--cache")
    assert (result.status, result.err) == (0, "")
    names = [line.split("  ")[0] for line in result.out.splitlines()]
    assert names == ["perplexity", "bits per character", "tokens", "unknown", "without the cache", "cache"]
    assert "100 tokens, theta 0.1, lambda 0.25" in result.out


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"size": 0, "theta": 1, "lambda": 0.1}', '{"size": "many"}'])
def test_a_damaged_cache(content: str, work: Path, model: Path, prpn: Command) -> None:
    (model / "cache.json").write_text(content)
    result = prpn("perplexity", work / "test.txt", "-m", model, "--cache")
    assert_refused(result, 1, "cache.json: not a cache", "--cache --tune")


def test_no_cache_for_a_sentence_model(work: Path, tmp_path: Path, prpn: Command) -> None:
    text = write_text(tmp_path / "text.txt")
    run(tmp_path / "sentences", text, "training.batching=sentences", "training.steps=1")
    result = prpn("perplexity", work / "test.txt", "-m", tmp_path / "sentences", "--cache", "--tune")
    assert_refused(result, 2, "every sentence by itself", "leave out --cache")


def test_per_token(work: Path, model: Path, prpn: Command) -> None:
    words = ("perplexity", "-", "-m", model, "--per-token")
    result = prpn(*words, stdin=b"the zyx\n\nsat .\n")
    assert (result.status, result.err) == (0, "")
    rows = [line.split("\t") for line in result.out.splitlines()]
    assert [(line, token, known) for line, token, _, known in rows] == [
        ("1", "the", "the"), ("1", "zyx", "<unk>"), ("1", "</s>", "</s>"),
        ("3", "sat", "sat"), ("3", ".", "."), ("3", "</s>", "</s>"),
    ]  # fmt: skip
    values = json.loads(prpn(*words, "--json", stdin=b"the zyx\n\nsat .\n").out)
    assert [f"{each['bits']:.4f}" for each in values["surprisal"]] == [bits for _, _, bits, _ in rows]
    plain = json.loads(prpn("perplexity", "-", "-m", model, "--json", stdin=b"the zyx\n\nsat .\n").out)
    assert {name: values[name] for name in plain} == {
        name: value if isinstance(value, str) else pytest.approx(value) for name, value in plain.items()
    }


def test_per_token_with_a_cache(work: Path, model: Path, prpn: Command) -> None:
    (model / "cache.json").write_text(json.dumps({"size": 100, "theta": 0.1, "lambda": 0.25}))
    words = ("perplexity", work / "test.txt", "-m", model, "--cache", "--json")
    summary, tokens = json.loads(prpn(*words).out), json.loads(prpn(*words, "--per-token").out)
    bits = math.fsum(each["bits"] for each in tokens["surprisal"])
    assert bits * math.log(2) / summary["tokens"] == pytest.approx(summary["loss"], rel=1e-6)
    assert tokens["without_cache"] == pytest.approx(summary["without_cache"], rel=1e-6)


@pytest.mark.parametrize(("content", "cause"), [(b"", "the input is empty"), (b"a\x00", "not text")])
def test_per_token_of_what_is_no_text(content: bytes, cause: str, model: Path, prpn: Command) -> None:
    assert_refused(prpn("perplexity", "-", "-m", model, "--per-token", stdin=content), 1, "standard input", cause)


@pytest.mark.parametrize("flags", [("--per-token",), ("--per-token", "--json")])
def test_per_token_of_blank_lines(flags: tuple[str, ...], model: Path, prpn: Command) -> None:
    result = prpn("perplexity", "-", "-m", model, *flags, stdin=b" \n\n")
    assert_refused(result, 1, "standard input: no token in it")


def test_pairs(work: Path, model: Path, tmp_path: Path, prpn: Command) -> None:
    (tmp_path / "one.txt").write_text("the man sat\na dog ran\nthe zyx\n")
    words = ("perplexity", tmp_path / "one.txt", "--against", "-", "-m", model)
    result = prpn(*words, stdin=b"the sat man\na ran dog\nthe zyzzyva\n")
    assert (result.status, result.err) == (0, "")
    rows, summary = result.out.split("\n\n")
    assert [line.split("\t")[0] for line in rows.splitlines()] == ["1", "2", "3"]
    assert rows.endswith("\ttie")
    names = [line.split("  ")[0] for line in summary.splitlines()]
    assert names == ["first more probable", "mean difference", "with unknown words"]
    values = json.loads(prpn(*words, "--json", stdin=b"the sat man\na ran dog\nthe zyzzyva\n").out)
    assert (values["pairs"], values["ties"], values["with_unknown"]) == (3, 1, 1)
    for row, pair in zip(rows.splitlines(), values["lines"], strict=True):
        assert row == f"{pair['line']}\t{pair['first']:.4f}\t{pair['second']:.4f}\t{pair['lower']}"
    assert values["first"] + values["second"] == 2


def test_pairs_of_different_numbers_of_lines(work: Path, model: Path, prpn: Command) -> None:
    words = ("perplexity", work / "test.txt", "--against", "-", "-m", model)
    assert_refused(prpn(*words, stdin=b"a\n"), 1, "test.txt: 8 lines, but standard input has 1")


@pytest.mark.parametrize(
    ("flags", "fragment"),
    [
        (("--tune",), "say --cache --tune"),
        (("--cache", "--tune", "--per-token"), "tune first"),
        (("--against", "-", "--cache"), "leave out --cache"),
        (("--against", "-", "--per-token"), "leave out --cache and --per-token"),
    ],
)
def test_what_does_not_go_together(flags: tuple[str, ...], fragment: str, model: Path, prpn: Command) -> None:
    assert_refused(prpn("perplexity", "-", "-m", model, *flags), 2, fragment)
