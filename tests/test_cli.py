"""The command line: what goes to which stream, the exit status, and that a failure is one line and leaves nothing."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from prpn import __version__
from prpn.cli import main
from tests.training.tiny import differences, files, metrics, outcome, sentences, toml, write_text


class Result(NamedTuple):
    status: int
    out: str
    err: str


Command = Callable[..., Result]


@pytest.fixture
def prpn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run the command in this process."""

    def run(*words: object, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "argv", ["prpn", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main()
        code = exit_.value.code
        return Result(code if isinstance(code, int) else int(code is not None), *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recipe, a text, and a model trained by the command line."""
    folder = tmp_path_factory.mktemp("work")
    toml(folder / "tiny.toml", "training.epochs=1")
    write_text(folder / "text.txt")
    write_text(folder / "test.txt", 8, seed=3)
    with pytest.MonkeyPatch.context() as patch:
        words = ["train", folder / "tiny.toml", "--text", folder / "text.txt", "--out", folder / "model"]
        patch.setattr(sys, "argv", ["prpn", *map(str, words)])
        with pytest.raises(SystemExit) as exit_:
            main()
    assert exit_.value.code == 0
    return folder


def refused(result: Result, status: int, *fragments: str) -> None:
    """A failure: nothing on standard output, one line on standard error that holds the fragments in order."""
    assert result.status == status, result
    assert result.out == ""
    assert result.err.startswith("prpn: ")
    assert result.err.count("\n") == 1, result.err
    assert result.err.endswith("\n")
    place = 0
    for fragment in fragments:
        assert fragment in result.err[place:], (fragment, result.err)
        place = result.err.index(fragment, place)


# train


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


# train: what is refused


@pytest.fixture
def failing(work: Path, tmp_path: Path, prpn: Command) -> Callable[..., Result]:
    """Train into a new folder, which must not be there afterwards; later options win."""

    def run(*words: object, recipe: object = work / "tiny.toml", text: object = work / "text.txt") -> Result:
        before = sorted(tmp_path.rglob("*"))
        result = prpn("train", recipe, *(["--text", text] if text else []), "--out", tmp_path / "run", *words)
        assert sorted(tmp_path.rglob("*")) == before, "a failed start left something behind"
        return result

    return run


def test_missing_text(failing: Callable[..., Result], tmp_path: Path) -> None:
    refused(failing(text=tmp_path / "nowhere.txt"), 1, "nowhere.txt: no such file")


def test_missing_validation_text(failing: Callable[..., Result], tmp_path: Path) -> None:
    refused(failing("--valid", tmp_path / "nowhere.txt"), 1, "nowhere.txt: no such file")


@pytest.mark.parametrize(
    ("content", "fragments"),
    [
        (b"", ("text.dat", "empty")),
        (b" \n\n", ("",)),
        (b"fine\nab\x00cd\n", ("text.dat:2", "not text")),
        (bytes(range(256)), ("text.dat:1",)),
        ("fine\ncaf\xe9\n".encode("latin-1"), ("text.dat:2", "not UTF-8", "iconv -f latin1 -t utf-8")),
        ("fine\n".encode("utf-16"), ("text.dat:1", "UTF-16")),
    ],
    ids=["empty", "blank", "NUL", "binary", "latin-1", "UTF-16"],
)
@pytest.mark.parametrize("option", ["--text", "--valid"])
def test_unusable_text(
    option: str, content: bytes, fragments: tuple[str, ...], failing: Callable[..., Result], tmp_path: Path
) -> None:
    path = tmp_path / "text.dat"
    path.write_bytes(content)
    result = failing(text=path) if option == "--text" else failing("--valid", path)
    refused(result, result.status, *fragments)
    assert result.status in (1, 2)


def test_text_too_short_to_hold_a_part_out(failing: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("word\n")
    refused(failing(text=tmp_path / "text.txt"), 1, "the text", "too short", "give more text or a validation file")


def test_broken_archive(failing: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "text.gz").write_bytes(gzip.compress(sentences(50).encode())[:-20])
    refused(failing(text=tmp_path / "text.gz"), 1, "text.gz: broken .gz file")


def test_folder_as_text(failing: Callable[..., Result], tmp_path: Path) -> None:
    refused(failing(text=tmp_path), 1, "this is a folder")


@pytest.mark.parametrize(
    ("name", "nearest"), [("quick-wrod", "quick-word"), ("ptb_word", "ptb-word"), ("Demo", "demo")]
)
def test_unknown_recipe(name: str, nearest: str, failing: Callable[..., Result]) -> None:
    refused(failing(recipe=name), 2, f"no recipe called {name}", f"did you mean {nearest}?")


def test_a_recipe_like_no_other(failing: Callable[..., Result]) -> None:
    result = failing(recipe="xyzzy")
    refused(result, 2, "no recipe called xyzzy", "known: demo, ")
    assert result.err.count("known:") == 1, "the list is given once"


def test_missing_recipe_file(failing: Callable[..., Result], tmp_path: Path) -> None:
    refused(failing(recipe=tmp_path / "nowhere.toml"), 2, "nowhere.toml: no such recipe file")


@pytest.mark.parametrize(
    "content", [b"[text\n", b"name = 'caf\xe9'\n", b"[txet]\n", b"[model]\nhiden = 3\n", b"text = 3\n", b"\x00\x80"]
)
def test_unusable_recipe_file(content: bytes, failing: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(content)
    refused(failing(recipe=tmp_path / "bad.toml"), 2)


@pytest.mark.parametrize(
    ("assignment", "fragments"),
    [
        ("training.epoch=3", ("training.epoch", "did you mean epochs?")),
        ("trainig.epochs=3", ("trainig.epochs", "did you mean training?")),
        ("epochs=3", ("epochs=3", "section.key=value")),
        ("training.epochs", ("training.epochs", "section.key=value")),
        ("training.epochs=many", ("training.epochs", "whole number")),
        ("training.epochs=-1", ("training.epochs", "0 or more")),
        ("training.schedule=linear", ("training.schedule", "'cosine'")),
        ("model.dropout_between=1.5", ("model.dropout_between", "[0, 1)")),
    ],
)
def test_bad_assignment(assignment: str, fragments: tuple[str, ...], failing: Callable[..., Result]) -> None:
    refused(failing("--set", assignment), 2, *fragments)


def test_unknown_corpus(failing: Callable[..., Result]) -> None:
    refused(failing("--set", "text.corpus=nowhere", text=None), 1, "nowhere: no such embedded corpus", "give --text")


@pytest.mark.parametrize("seed", ["-1", str(2**64), str(2**200)])
def test_bad_seed(seed: str, failing: Callable[..., Result]) -> None:
    refused(failing("--seed", seed), 2, "seed")


def test_no_text_and_no_corpus(failing: Callable[..., Result]) -> None:
    refused(failing(recipe="quick-word", text=None), 1, "--text", "no text to train on", "give --text FILE")


@pytest.mark.parametrize("device", ["nonsense", "cuda:99", "cpu:x"])
def test_unusable_device(device: str, failing: Callable[..., Result]) -> None:
    refused(failing("--device", device), 2, f"--device {device}", "use cpu")


def test_out_is_a_file(failing: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    refused(failing(), 1, "run: is a file")
    assert (tmp_path / "run").read_text() == "mine"


def test_out_below_a_file(failing: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    refused(failing("--out", tmp_path / "file" / "run"), 1, "file")


def test_unknown_start(failing: Callable[..., Result], tmp_path: Path) -> None:
    refused(failing("--init", tmp_path / "nowhere"), 1, "nowhere")


def test_start_from_another_network(failing: Callable[..., Result], work: Path) -> None:
    refused(
        failing("--init", work / "model", "--set", "model.hidden=6"), 2, "--init", "its network is not the recipe's"
    )


@pytest.mark.parametrize("words", [("--nonsense",), ("--seed", "one"), ("--out",)])
def test_wrong_use(words: tuple[str, ...], failing: Callable[..., Result]) -> None:
    result = failing(*words)
    assert result.status == 2
    assert result.out == ""
    assert "Traceback" not in result.err


def test_failures_print_no_json(failing: Callable[..., Result], tmp_path: Path) -> None:
    refused(failing("--json", text=tmp_path / "nowhere.txt"), 1, "no such file")


def test_used_folder(work: Path, prpn: Command) -> None:
    before = files(work / "model")
    result = prpn("train", work / "tiny.toml", "--text", work / "text.txt", "--out", work / "model")
    refused(result, 1, "already holds a run", "--resume")
    assert files(work / "model") == before


def test_resume_with_other_settings(work: Path, prpn: Command) -> None:
    before = files(work / "model")
    result = prpn(
        "train", work / "tiny.toml", "--text", work / "text.txt", "--out", work / "model", "--resume", "--seed", 9
    )
    assert result.status == 1
    assert result.out == ""
    assert result.err.splitlines()[-1].startswith("prpn: ")
    assert "another training configuration" in result.err.splitlines()[-1]
    assert "Traceback" not in result.err
    assert files(work / "model") == before


# train: Ctrl-C


def test_interrupt_and_resume(work: Path, tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "prpn.cli", "train", str(work / "tiny.toml"), "--text", str(work / "text.txt"),
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


# perplexity


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
    refused(prpn("perplexity", "-", "-m", work / "model", "--json", stdin=content), 1, *fragments)


def test_perplexity_of_line_ends_alone(work: Path, prpn: Command) -> None:
    """They have no characters: a figure or a refusal, but no division by zero."""
    result = prpn("perplexity", "-", "-m", work / "model", "--json", stdin=b"</s>\n")
    if result.status:
        refused(result, 1, "standard input")
    else:
        assert json.loads(result.out)["tokens"] == 1


def test_perplexity_of_a_missing_file(work: Path, tmp_path: Path, prpn: Command) -> None:
    refused(prpn("perplexity", tmp_path / "nowhere.txt", "-m", work / "model"), 1, "nowhere.txt: no such file")


def test_perplexity_of_a_missing_model(work: Path, tmp_path: Path, prpn: Command) -> None:
    refused(prpn("perplexity", work / "test.txt", "-m", tmp_path / "nowhere"), 1, "nowhere: not a model folder")


def test_perplexity_on_no_device(work: Path, prpn: Command) -> None:
    refused(prpn("perplexity", work / "test.txt", "-m", work / "model", "--device", "nonsense"), 2, "--device nonsense")


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
    refused(result, result.status)
    assert result.status in (1, 2)


# info and the rest


def test_info(work: Path, prpn: Command) -> None:
    result = prpn("info", work / "model")
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith("# model\n")
    assert "parameters; kernels: torch" in result.out


def test_info_json(work: Path, prpn: Command) -> None:
    result = prpn("info", work / "model", "--json")
    assert (result.status, result.err, result.out.count("\n")) == (0, "", 1)
    values = json.loads(result.out)
    assert values["config"] == json.loads((work / "model" / "config.json").read_text())
    assert values["vocabulary"] == len(json.loads((work / "model" / "vocabulary.json").read_text())["tokens"])
    assert values["parameters"] > 0


def test_info_of_nothing(tmp_path: Path, prpn: Command) -> None:
    refused(prpn("info", tmp_path), 1, "not a model folder", "prpn train")


def test_unknown_kernels(work: Path, prpn: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRPN_KERNELS", "gpu")
    refused(prpn("info", work / "model", "--json"), 2, "PRPN_KERNELS=gpu", "torch or off")


@pytest.mark.parametrize("words", [("--help",), ("train", "--help"), ("perplexity", "-h"), ("info", "-h")])
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
    refused(prpn("perplexity", work / "test.txt", "-m", work / "model"), 1, "cannot write the cache", "PRPN_CACHE")
