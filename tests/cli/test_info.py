"""`prpn info`, help, version and the environment."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from prpn import __version__, kernels
from tests.cli.command import Command, Result, assert_refused


def test_info(work: Path, prpn: Command) -> None:
    result = prpn("info", work / "model")
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith("# model\n")
    assert f"parameters; kernels: {kernels.described()}" in result.out


def test_info_json(work: Path, prpn: Command) -> None:
    result = prpn("info", work / "model", "--json")
    assert (result.status, result.err, result.out.count("\n")) == (0, "", 1)
    values = json.loads(result.out)
    assert values["config"] == json.loads((work / "model" / "config.json").read_text())
    assert values["vocabulary"] == len(json.loads((work / "model" / "vocabulary.json").read_text())["tokens"])
    assert values["parameters"] > 0


def test_info_of_nothing(tmp_path: Path, prpn: Command) -> None:
    assert_refused(prpn("info", tmp_path), 1, "not a model folder", "prpn train")


def test_unknown_kernels(work: Path, prpn: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRPN_KERNELS", "gpu")
    assert_refused(prpn("info", work / "model", "--json"), 2, "PRPN_KERNELS=gpu", "autograd, off, fp32, bf16")


@pytest.mark.parametrize(
    "words", [("--help",), ("train", "--help"), ("perplexity", "-h"), ("generate", "-h"), ("info", "-h")]
)
def test_help(words: tuple[str, ...], prpn: Command) -> None:
    result = prpn(*words)
    assert (result.status, result.err) == (0, "")
    assert "Usage" in result.out


def test_version(prpn: Command) -> None:
    assert prpn("--version") == Result(0, f"prpn {__version__}\n", "")


def test_a_cache_that_cannot_be_written(
    work: Path, tmp_path: Path, prpn: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("PRPN_CACHE", os.fspath(tmp_path / "file" / "cache"))
    assert_refused(
        prpn("perplexity", work / "test.txt", "-m", work / "model"), 1, "cannot write the cache", "PRPN_CACHE"
    )
