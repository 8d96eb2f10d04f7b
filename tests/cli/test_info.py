"""`prpn info`, help, version and the environment."""

from __future__ import annotations

import json
import os
from pathlib import Path
from shutil import copyfile, copytree

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
    assert values["kernels"] == kernels.described()
    record = json.loads((work / "model" / "record.json").read_text())
    told = ("data", "steps", "validation", "finished", "machine", "command", "commit")
    assert {key: values[key] for key in told} == {key: record[key] for key in told}
    assert "metrics" not in values


@pytest.mark.parametrize("content", ["", "[]", "{", None])
def test_info_without_a_record(content: str | None, work: Path, tmp_path: Path, prpn: Command) -> None:
    model = copytree(work / "model", tmp_path / "model")
    (model / "record.json").unlink()
    if content is not None:
        (model / "record.json").write_text(content)
    result = prpn("info", model, "--json")
    assert (result.status, result.err) == (0, "")
    assert set(json.loads(result.out)) == {"config", "vocabulary", "parameters", "kernels"}


@pytest.mark.parametrize("evaluated", [False, True])
def test_info_of_a_run_that_was_stopped(
    evaluated: bool, work: Path, tmp_path: Path, prpn: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "stopped"
    model.mkdir()
    for name in ("config.json", "vocabulary.json", *(["model.safetensors"] if evaluated else [])):
        copyfile(work / "model" / name, model / name)
    monkeypatch.chdir(model)
    finished = json.loads(prpn("info", work / "model", "--json").out)
    result = prpn("info", ".")
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith("# stopped\n\nTraining has not finished.\n")
    assert f"recipe tiny, vocabulary {finished['vocabulary']}\n{finished['parameters']:,} parameters" in result.out
    same = {key: finished[key] for key in ("config", "vocabulary", "parameters", "kernels")}
    assert json.loads(prpn("info", ".", "--json").out) == {**same, "finished": None}


def test_a_card_is_right_wherever_its_folder_is(
    work: Path, tmp_path: Path, prpn: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    words = ("train", work / "tiny.toml", "--text", work / "text.txt", "--out", ".", "--set", "training.steps=1")
    assert prpn(*words).status == 0
    card = prpn("info", ".").out
    assert card.startswith("# mine\n")
    assert "`prpn info FOLDER`" in card
    assert "FOLDER is the folder of this card" in card
    assert "prpn info mine" not in card


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
