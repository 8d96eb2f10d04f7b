"""`prpn distill`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import Command, assert_refused


def test_the_command(work: Path, tmp_path: Path, prpn: Command) -> None:
    out = tmp_path / "crowd"
    words = ("distill", "-m", work / "model", "-m", work / "model", "--text", work / "test.txt", "--epochs", 1)
    result = prpn(*words, "--channels", 8, "--out", out)
    assert (result.status, result.err) == (0, "")
    assert "2 parsers" in result.out
    assert prpn("parse", work / "test.txt", "-m", out).out.count("\n") == len(
        (work / "test.txt").read_text().splitlines()
    )
    assert_refused(prpn(*words, "--out", out), 1, "already holds a model", "--out")
    own = prpn("perplexity", work / "test.txt", "-m", work / "model")
    assert prpn("perplexity", work / "test.txt", "-m", out) == own
    (out / "model.safetensors").unlink()
    assert_refused(prpn("perplexity", work / "test.txt", "-m", out), 1, "without a language model")
