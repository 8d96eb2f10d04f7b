"""What is said of texts that do not fit, and that nothing is said of those that do."""

from __future__ import annotations

import gzip
import io
import logging
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from prpn.config import TextConfig
from prpn.models.folder import model_folder
from prpn.parsing.parser import Parser
from prpn.text import fitness
from prpn.text.sentences import in_sentences
from prpn.text.tokenizer import Tokenizer
from prpn.training.data import embedded_corpus
from prpn.trees.cleaning import Cleaning, load_treebank
from tests.training.tiny import sentences as drawn

from .shared_data import shared

ENGLISH = Parser.load(model_folder())
RAW, SPLIT = ENGLISH.tokenizer, ENGLISH.tokenizer_for(True)
CHARACTERS = Tokenizer(TextConfig(tokenizer="characters"))
EWT = embedded_corpus("ewt").read_text(encoding="utf-8").split("\n")[:2000]
JAPANESE = """\
ただし、50周年ソングに変更後は、EDも歌つきのものが使われた。
私は初めてだったんだけど思っていたよりも魚は新鮮でした。
"""
THAI = "ฉันไม่เคยคิดว่าจะได้เห็นสิ่งนี้\nแต่เมื่อวานนี้ฉันได้เห็นมันแล้ว\n"
GERMAN = "Der alte Mann saß auf der Bank vor seinem Haus und blickte lange über das stille Wasser.\n"


def found(text: str, tokenizer: Tokenizer = RAW, split: bool = False) -> list[str]:
    return [each.partition(";")[0] for each in fitness.findings(text, tokenizer, ENGLISH.vocabulary, split=split)]


def paragraphs(size: int) -> list[str]:
    return [" ".join(EWT[begin : begin + size]) for begin in range(0, len(EWT), size)]


def words_of(path: Path, keep: str) -> str:
    loaded = load_treebank([path], Cleaning(keep=keep), skip_broken=True)  # type: ignore[arg-type]
    return "\n".join(sentence.line for sentence in loaded.counted())


# Good text


@pytest.mark.parametrize("tokenizer", [RAW, SPLIT])
def test_nothing_is_said_of_the_embedded_corpora(tokenizer: Tokenizer) -> None:
    assert found("\n".join(EWT), tokenizer) == []
    for keep in ("auto", "all"):
        assert found(words_of(embedded_corpus("masc", "trees"), keep), tokenizer) == []
    assert list(fitness.findings("\n".join(EWT), CHARACTERS)) == []


@pytest.mark.parametrize(
    "name", ["ewt/ewt.txt", "kjv/kjv.txt", "wiki/wiki.test.txt.xz", "ptb/ptb.valid.txt", "text8/text8-first-74M.xz"]
)
def test_nothing_is_said_of_good_english(name: str, caplog: pytest.LogCaptureFixture) -> None:
    line_ends = "text8" not in name
    for config in (ENGLISH.recipe.text, TextConfig(line_ends=line_ends)):
        fitness.warn(shared(name), Tokenizer(config), ENGLISH.vocabulary)
    fitness.warn(shared(name), Tokenizer(TextConfig(tokenizer="characters", line_ends=line_ends)))
    assert caplog.messages == []


def test_of_bibles_nothing_is_said_but_that_they_are_not_english() -> None:
    for path in sorted(shared("bibles").glob("*.xz")):
        text = fitness.beginning(path)
        assert len(text) > 50_000
        assert list(fitness.findings(text, RAW)) == [], path
        [unknown] = fitness.findings(text, RAW, ENGLISH.vocabulary)
        assert "unknown to the model" in unknown, path


def test_drawn_text_is_no_prose() -> None:
    for text in (
        drawn(200),
        "the old man sat on the bench\n" * 500,
        "word\n" * 500,
        "the old man\nthe man is old\n" * 40,
    ):
        assert found(text) == []


def test_little_is_nothing_to_go_by() -> None:
    for text in ("", "\n", "zyzzyva foo", GERMAN, JAPANESE, "<p>one</p>", '{"a": 1}', "(a (b c))", "A. B. C. D. E.\n"):
        assert found(text) == []


# Text that does not fit


def test_words_that_are_unknown() -> None:
    [finding] = fitness.findings(GERMAN * 10, RAW, ENGLISH.vocabulary)
    assert finding.endswith("% of its words are unknown to the model; use or train one of this language")
    assert list(fitness.findings(GERMAN * 10, RAW)) == []


def test_characters_that_are_unknown() -> None:
    [finding] = fitness.findings(JAPANESE * 10, CHARACTERS, ENGLISH.vocabulary)
    assert "% of its characters are unknown to the model" in finding
    assert list(fitness.findings(JAPANESE * 10, CHARACTERS)) == []


@pytest.mark.parametrize("text", [JAPANESE, THAI])
def test_scripts_without_spaces(text: str) -> None:
    [finding] = fitness.findings(text * 10, RAW)
    assert "written without spaces" in finding
    assert "quick-char" in finding
    assert "--tokenized" in finding
    spaced = "\n".join(" ".join(line[i : i + 2] for i in range(0, len(line), 2)) for line in text.split("\n"))
    assert list(fitness.findings(spaced * 10, SPLIT)) == []


@pytest.mark.parametrize("width", [60, 72, 100])
@pytest.mark.parametrize("between", ["\n", "\n\n"])
@pytest.mark.parametrize("change", [str, str.lower])
def test_hard_wrapped_lines(width: int, between: str, change: type[str]) -> None:
    text = change(between.join(textwrap.fill(each, width) for each in paragraphs(5)))
    for ends in (text, text.replace("\n", "\r\n")):
        assert found(ends) == ["sentences go on from line to line"]
    assert found(text, split=True) == []
    assert list(fitness.findings(text, CHARACTERS)) == []
    assert list(fitness.findings(text, Tokenizer(TextConfig(line_ends=False)))) == []


def test_several_sentences_a_line() -> None:
    for size in (5, 8, 50):
        assert found("\n".join(paragraphs(size))) == ["several sentences a line"]
        assert found("\n".join(paragraphs(size)), split=True) == []
    assert found("\n".join(paragraphs(2))) == []


def test_markup() -> None:
    html = "\n".join(f"<p class='x'>{line}</p>" for line in EWT[:50])
    assert found(html) == ["it looks like HTML or XML"]
    assert found("\n".join(f'{{"text": "{n}"}}' for n in range(50))) == ["it looks like JSON"]
    assert found("(S (NP the) (VP sat))\n" * 50) == ["it looks like trees"]
    assert found("1\tDer\tder\tDET\tART\t_\t2\tdet\t_\t_\n" * 50) == ["it looks like a table, such as CoNLL-U"]
    tokens = "\n".join(f"<s> {line} <unk> </s>" for line in EWT[:50])
    assert found(tokens, SPLIT) == []


# Where it is said


def test_it_is_logged_with_the_place(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "prose.txt").write_text("\n".join(paragraphs(5)), encoding="utf-8")
    with caplog.at_level(logging.WARNING, "prpn"):
        fitness.warn(tmp_path / "prose.txt", RAW, ENGLISH.vocabulary)
        fitness.warn(in_sentences(str(tmp_path / "prose.txt")), RAW, ENGLISH.vocabulary)
    remedy = "give one sentence a line, or say --sentences (train, parse, perplexity)"
    assert caplog.messages == [f"{tmp_path}/prose.txt: several sentences a line; {remedy}"]


def test_standard_input_is_only_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.BufferedReader(io.BytesIO(GERMAN.encode() * 100))  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stdin))
    assert fitness.beginning("-").startswith(GERMAN)
    assert stdin.read() == GERMAN.encode() * 100
    for content in (gzip.compress(GERMAN.encode() * 100), GERMAN.encode() * 100 + b"\0"):
        stdin = io.BufferedReader(io.BytesIO(content), 1 << 16)  # type: ignore[arg-type]
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stdin))
        assert fitness.beginning("-") == ""


def test_what_cannot_be_looked_at_is_left_to_its_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "cut.xz").write_bytes(b"\xfd7zXZ\x00")
    for name in ("pipe", "none", "cut.xz", ".", "x" * 300, "\0"):
        assert fitness.beginning(tmp_path / name) == ""


def test_one_look_is_cheap() -> None:
    text = fitness.beginning(embedded_corpus("ewt"))
    assert len(text) <= fitness.SAMPLE_BYTES
    began = time.process_time()
    for _ in range(3):
        list(fitness.findings(text, RAW, ENGLISH.vocabulary))
    assert time.process_time() - began < 3


def test_the_command_says_it_once_on_standard_error() -> None:
    command = [sys.executable, "-m", "prpn", "parse"]
    for text in (GERMAN * 100, GERMAN * 100 + "\n"):
        done = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
        assert done.stdout.count(b"\n") == text.count("\n")
        [line] = done.stderr.decode().splitlines()
        assert line.startswith("prpn: standard input: ")
        assert line.endswith("of its words are unknown to the model; use or train one of this language")
