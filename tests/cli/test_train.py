"""`prpn train`: what it makes, prints, and does when it is interrupted."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from prpn.api.model import load
from prpn.cli.options import print_json
from prpn.models.folder import model_folder
from tests.cli.command import Command
from tests.training.tiny import differences, files, metrics, outcome, toml


def test_model_folder(work: Path) -> None:
    model = work / "model"
    assert set(files(model)) == {
        "config.json", "model.safetensors", "vocabulary.json", "README.md", "metrics.jsonl", "record.json",
        "training/checkpoint.safetensors",
    }  # fmt: skip
    for name, content in files(model).items():
        assert not content.startswith((b"\x80", b"PK")), f"{name} is a pickle or a torch archive"
        if name.endswith(".safetensors"):
            header = int.from_bytes(content[:8], "little")
            json.loads(content[8 : 8 + header])
        else:
            content.decode()
    assert json.loads((model / "config.json").read_text())["model"]["hidden"] == 8
    assert json.loads((model / "vocabulary.json").read_text())["tokens"][:2] == ["<unk>", "</s>"]
    record = json.loads((model / "record.json").read_text())
    assert record["metrics"][-1]["step"] == record["steps"]
    assert record["validation"]["perplexity"] > 1
    assert "held-out perplexity" in (model / "README.md").read_text()


def test_the_end_of_the_text_is_held_out(work: Path) -> None:
    record = json.loads((work / "model" / "record.json").read_text())
    lines = [[*line.split(), "</s>"] for line in (work / "text.txt").read_text().splitlines()]
    total = sum(map(len, lines))
    data = record["data"]
    assert data["training"]["tokens"] + data["validation"]["tokens"] == total
    assert data["validation"]["tokens"] == pytest.approx(0.1 * total, abs=8)
    held_out = 0
    for line in reversed(lines):
        if held_out >= data["validation"]["tokens"]:
            break
        held_out += len(line)
    assert held_out == data["validation"]["tokens"], "whole lines are held out"
    assert record["validation"]["tokens"] == data["validation"]["tokens"]


def test_train_prints_json_alone(work: Path, tmp_path: Path, prpn: Command) -> None:
    result = prpn(
        "train", work / "tiny.toml", "--text", work / "text.txt", "--valid", work / "test.txt", "--out",
        tmp_path / "run", "--json", "--seed", 5, "--set", "training.steps=2", "--set", "model.hidden=6",
    )  # fmt: skip
    assert result.status == 0
    assert result.err == ""
    assert result.out.count("\n") == 1
    values = json.loads(result.out)
    assert values["steps"] == 2
    assert values["model"] == str(tmp_path / "run")
    assert {"perplexity", "bits_per_character", "tokens", "unknown"} <= set(values["validation"])
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["training"]["seed"], config["model"]["hidden"]) == (5, 6)
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    test = [*map(str.split, (work / "test.txt").read_text().splitlines())]
    assert record["data"]["validation"]["tokens"] == sum(map(len, test)) + len(test)


def test_texts_may_stand_beside_the_recipe(work: Path, tmp_path: Path, prpn: Command) -> None:
    (tmp_path / "empty-not.txt").write_text("the man\n" * 9)
    both = (work / "text.txt", tmp_path / "empty-not.txt")
    ways = [both, (both[0], "--text", both[1]), ("--text", both[0], "--text", both[1])]
    for number, way in enumerate(ways):
        out = tmp_path / str(number)
        result = prpn("train", work / "tiny.toml", *way, "--out", out, "--json", "--set", "training.steps=1")
        assert result.status == 0
    checksums = {
        json.loads((tmp_path / str(n) / "record.json").read_text())["data"]["training"]["sha256"] for n in range(3)
    }
    assert len(checksums) == 1


def test_train_prints_the_result_on_standard_output(work: Path, tmp_path: Path, prpn: Command) -> None:
    result = prpn(
        "train", work / "tiny.toml", "--text", work / "text.txt", "--out", tmp_path / "run", "--set", "training.steps=2"
    )
    assert result.status == 0
    assert result.out.startswith("validation perplexity ")
    assert result.out.count("\n") == 1
    assert "2 steps" in result.err


def test_two_texts_are_one_after_the_other(work: Path, tmp_path: Path, prpn: Command) -> None:
    whole = (work / "text.txt").read_text()
    lines = whole.splitlines(keepends=True)
    (tmp_path / "one.txt").write_text("".join(lines[:20]))
    with gzip.open(tmp_path / "two.txt.gz", "wt") as file:
        file.write("".join(lines[20:]))
    result = prpn(
        "train", work / "tiny.toml", "--text", tmp_path / "one.txt", "--text", tmp_path / "two.txt.gz", "--out",
        tmp_path / "run", "--json",
    )  # fmt: skip
    assert result.status == 0
    assert differences(outcome(tmp_path / "run"), outcome(work / "model")) == []


def test_text_from_standard_input(work: Path, tmp_path: Path, prpn: Command) -> None:
    content = (work / "text.txt").read_bytes()
    result = prpn("train", work / "tiny.toml", "--text", "-", "--out", tmp_path / "run", "--json", stdin=content)
    assert result.status == 0
    assert differences(outcome(tmp_path / "run"), outcome(work / "model")) == []


def test_out_is_named_after_the_recipe(
    work: Path, tmp_path: Path, prpn: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("train", work / "tiny.toml", "--text", work / "text.txt", "--set", "training.steps=1")
    assert prpn(*words).status == 0
    assert (tmp_path / "runs" / "tiny" / "model.safetensors").exists()


def test_tokenized_text_is_not_split_again(tmp_path: Path, prpn: Command) -> None:
    recipe = toml(tmp_path / "words.toml", "training.steps=1", "text.tokenizer=unicode")
    (tmp_path / "text.txt").write_text("well-known (words) here\n" * 30)
    known = {}
    for name, options in {"split": (), "whole": ("--tokenized",)}.items():
        assert prpn("train", recipe, "--text", tmp_path / "text.txt", "--out", tmp_path / name, *options).status == 0
        known[name] = json.loads((tmp_path / name / "vocabulary.json").read_text())["tokens"]
    assert "(words)" in known["whole"]
    assert "(words)" not in known["split"]


def test_names_that_are_not_utf8(work: Path, tmp_path: Path, prpn: Command) -> None:
    recipe, text, out = (tmp_path / os.fsdecode(name) for name in (b"\xe9.toml", b"\xe9.txt", b"out"))
    try:
        shutil.copy(work / "tiny.toml", recipe)
        shutil.copy(work / "text.txt", text)
    except OSError:
        pytest.skip("this file system has no such names")
    result = prpn("train", recipe, "--text", text, "--out", out, "--set", "training.steps=1", "--json")
    assert result.status == 0
    record = json.loads((out / "record.json").read_text(encoding="utf-8"))
    assert f"--text '{tmp_path}/?.txt'" in record["command"]
    assert record["recipe"]["name"] == "?"


def test_json_of_a_name_that_is_not_utf8(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"model": os.fsdecode("runs/né".encode() + b"\xe9")})
    assert capsys.readouterr().out == '{"model": "runs/né?"}\n'


def test_starts_from_an_embedded_model_by_its_name(work: Path, tmp_path: Path, prpn: Command) -> None:
    still = ("training.steps=1", "training.learning_rate=1e-12", "training.batch_size=2")
    result = prpn(
        "train", "english", "--init", "english", "--text", work / "text.txt", "--out", tmp_path / "run", "--json",
        *(word for setting in still for word in ("--set", setting)),
    )  # fmt: skip
    assert result.status == 0, result.err
    assert (tmp_path / "run" / "vocabulary.json").read_bytes() == (model_folder() / "vocabulary.json").read_bytes()
    before, after = (load(model).network.embedding.weight for model in (model_folder(), tmp_path / "run"))
    assert torch.allclose(before, after, atol=1e-6)


def test_interrupt_and_resume(work: Path, tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "prpn", "train", str(work / "tiny.toml"), "--text", str(work / "text.txt"),
        "--out", str(tmp_path / "run"), "--set", "training.epochs=60", "--set", "training.checkpoint_every=1",
    ]  # fmt: skip
    checkpoint = tmp_path / "run" / "training" / "checkpoint.safetensors"
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 120
        while not checkpoint.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    assert out == ""
    assert err.splitlines()[-1].startswith("prpn: stopped at step ")
    assert err.splitlines()[-1].endswith("go on with --resume")
    assert "Traceback" not in err
    assert checkpoint.exists()
    stopped = int(err.splitlines()[-1].split()[4].replace(",", ""))
    budget = ["--set", f"training.steps={stopped + 3}", "--set", "training.epochs=0", "--resume", "--json"]
    finished = subprocess.run([*command, *budget], capture_output=True, text=True, timeout=120, check=False)
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout)["steps"] == stopped + 3
    assert metrics(tmp_path / "run")[-1]["step"] == stopped + 3
