"""What `prpn train` refuses: in one line, leaving nothing behind."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import Command, Result, assert_refused
from tests.training.tiny import files, sentences


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
    assert_refused(failing(text=tmp_path / "nowhere.txt"), 1, "nowhere.txt: no such file")


def test_a_name_that_no_file_can_have(failing: Callable[..., Result], tmp_path: Path) -> None:
    name = "a" * 300
    assert_refused(failing(text=tmp_path / name), 1, f"{name}: cannot be read (File name too long)")
    assert_refused(failing("--out", tmp_path / name), 1, f"{name}: cannot be written (File name too long)")


def test_missing_validation_text(failing: Callable[..., Result], tmp_path: Path) -> None:
    assert_refused(failing("--valid", tmp_path / "nowhere.txt"), 1, "nowhere.txt: no such file")


def test_missing_treebank(failing: Callable[..., Result], tmp_path: Path) -> None:
    """Noticed before the text, which may be long, is read."""
    result = failing("--treebank", tmp_path / "nowhere.mrg", text=tmp_path / "nowhere.txt")
    assert_refused(result, 1, "nowhere.mrg: no such file")


def test_standard_input_is_text_and_treebank(failing: Callable[..., Result]) -> None:
    assert_refused(failing("--treebank", "-", text="-"), 1, "standard input: can be read only once")


def test_standard_input_is_both_texts(failing: Callable[..., Result]) -> None:
    assert_refused(failing("--valid", "-", text="-"), 1, "standard input: can be read only once")


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
    assert_refused(result, result.status, *fragments)
    assert result.status in (1, 2)


def test_text_too_short_to_hold_a_part_out(failing: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("word\n")
    assert_refused(
        failing(text=tmp_path / "text.txt"), 1, "the text", "too short", "give more text or a validation file"
    )


def test_broken_archive(failing: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "text.gz").write_bytes(gzip.compress(sentences(50).encode())[:-20])
    assert_refused(failing(text=tmp_path / "text.gz"), 1, "text.gz: broken gzip data")


def test_folder_as_text(failing: Callable[..., Result], tmp_path: Path) -> None:
    assert_refused(failing(text=tmp_path), 1, "this is a folder")


@pytest.mark.parametrize(
    ("name", "nearest"), [("quick-wrod", "quick-word"), ("ptb_word", "ptb-word"), ("Demo", "demo")]
)
def test_unknown_recipe(name: str, nearest: str, failing: Callable[..., Result]) -> None:
    assert_refused(failing(recipe=name), 2, f"no recipe called {name}", f"did you mean {nearest}?")


def test_a_recipe_like_no_other(failing: Callable[..., Result]) -> None:
    result = failing(recipe="xyzzy")
    assert_refused(result, 2, "no recipe called xyzzy", "known: demo, ")
    assert result.err.count("known:") == 1, "the list is given once"


def test_missing_recipe_file(failing: Callable[..., Result], tmp_path: Path) -> None:
    assert_refused(failing(recipe=tmp_path / "nowhere.toml"), 2, "nowhere.toml: no such recipe file")


@pytest.mark.parametrize(
    "content", [b"[text\n", b"name = 'caf\xe9'\n", b"[txet]\n", b"[model]\nhiden = 3\n", b"text = 3\n", b"\x00\x80"]
)
def test_unusable_recipe_file(content: bytes, failing: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(content)
    assert_refused(failing(recipe=tmp_path / "bad.toml"), 2)


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
    assert_refused(failing("--set", assignment), 2, *fragments)


def test_characters_that_are_split_already(failing: Callable[..., Result]) -> None:
    assert_refused(failing("--tokenized", "--set", "text.tokenizer=characters"), 2, "leave out --tokenized")


def test_a_network_larger_than_memory(failing: Callable[..., Result]) -> None:
    size = 2**31 - 2
    assert_refused(
        failing("--set", f"model.hidden={size}"),
        2,
        f"model.hidden = {size}",
        "does not fit into memory",
    )


def test_unknown_corpus(failing: Callable[..., Result]) -> None:
    assert_refused(
        failing("--set", "text.corpus=nowhere", text=None), 1, "nowhere: no such embedded corpus", "give --text"
    )


@pytest.mark.parametrize("seed", ["-1", str(2**64), str(2**200)])
def test_bad_seed(seed: str, failing: Callable[..., Result]) -> None:
    assert_refused(failing("--seed", seed), 2, "seed")


def test_no_text_and_no_corpus(failing: Callable[..., Result]) -> None:
    assert_refused(failing(recipe="quick-word", text=None), 2, "no text to train on", "give --text FILE")


@pytest.mark.parametrize("device", ["nonsense", "cuda:99", "cpu:x"])
def test_unusable_device(device: str, failing: Callable[..., Result]) -> None:
    assert_refused(failing("--device", device), 2, f"--device {device}", "use cpu")


def test_out_is_a_file(failing: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    assert_refused(failing(), 1, "run: is a file")
    assert (tmp_path / "run").read_text() == "mine"


def test_out_has_a_name_that_is_not_utf8(failing: Callable[..., Result], tmp_path: Path) -> None:
    assert_refused(failing("--out", tmp_path / os.fsdecode(b"caf\xe9")), 1, "caf?: its name is not UTF-8")


def test_out_below_a_file(failing: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert_refused(failing("--out", tmp_path / "file" / "run"), 1, "file")


def test_unknown_start(failing: Callable[..., Result], tmp_path: Path) -> None:
    assert_refused(failing("--init", tmp_path / "nowhere"), 1, "nowhere")


def test_start_from_another_network(failing: Callable[..., Result], work: Path) -> None:
    assert_refused(
        failing("--init", work / "model", "--set", "model.hidden=6"), 2, "--init", "its network is not the recipe's"
    )


@pytest.mark.parametrize("words", [("--nonsense",), ("--seed", "one"), ("--out",)])
def test_wrong_use(words: tuple[str, ...], failing: Callable[..., Result]) -> None:
    result = failing(*words)
    assert result.status == 2
    assert result.out == ""
    assert "Traceback" not in result.err


def test_failures_print_no_json(failing: Callable[..., Result], tmp_path: Path) -> None:
    assert_refused(failing("--json", text=tmp_path / "nowhere.txt"), 1, "no such file")


def test_used_folder(work: Path, prpn: Command) -> None:
    before = files(work / "model")
    result = prpn("train", work / "tiny.toml", "--text", work / "text.txt", "--out", work / "model")
    assert_refused(result, 1, "already holds a run", "--resume")
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
