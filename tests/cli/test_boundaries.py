"""`prpn boundaries`."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from prpn.config import save_recipe
from prpn.training.checkpoint import weights_of, write_tensors
from tests.cli.command import Command, assert_refused
from tests.language.models import model_of

TEXT = "the old man sat on the bench\nthe man sat\n"


@pytest.fixture
def characters(tmp_path: Path) -> Path:
    """A folder with a character model and a text."""
    model = model_of("text.tokenizer=characters", precise=False)
    folder = tmp_path / "characters"
    folder.mkdir()
    save_recipe(model.recipe, folder / "config.json")
    model.vocabulary.save(folder / "vocabulary.json")
    write_tensors(folder / "model.safetensors", weights_of(model.network))
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path


def test_boundaries(characters: Path, prpn: Command) -> None:
    words = ("boundaries", characters / "text.txt", "-m", characters / "characters")
    result = prpn(*words)
    assert (result.status, result.err) == (0, "")
    assert "words                    10 in 41 characters" in result.out
    values = json.loads(prpn(*words, "--json").out)
    assert set(values) == {"end", "begin", "reaches", "shuffled", "words", "inside", "characters"}
    assert f"area, end of word        {values['end']:.4f}" in result.out


def test_the_picture_has_a_bar_for_each_character(characters: Path, prpn: Command) -> None:
    picture = characters / "bars.svg"
    assert prpn("boundaries", characters / "text.txt", "-m", characters / "characters", "--out", picture).status == 0
    drawn = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    texts = [node.text for node in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert "".join(text or "" for text in texts) == TEXT.replace(" ", "_").replace("\n", "↵")
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}rect"))) == len(TEXT)


def test_a_model_of_words_is_refused(work: Path, prpn: Command) -> None:
    (work / "text.txt").write_text(TEXT)
    assert_refused(prpn("boundaries", work / "text.txt", "-m", work / "model"), 2, "is a model of words")


def test_a_picture_that_cannot_be_written(characters: Path, prpn: Command) -> None:
    out = characters / "no folder" / "bars.svg"
    result = prpn("boundaries", characters / "text.txt", "-m", characters / "characters", "--out", out)
    assert_refused(result, 1, "bars.svg: cannot be written", "--out")


def test_a_picture_of_another_kind(characters: Path, prpn: Command) -> None:
    words = ("boundaries", characters / "text.txt", "-m", characters / "characters", "--out")
    assert_refused(prpn(*words, characters / "bars.png"), 2, "bars.png", ".svg")
    assert not (characters / "bars.png").exists()


def test_any_number_of_lines(characters: Path, prpn: Command) -> None:
    words = ("boundaries", characters / "text.txt", "-m", characters / "characters", "--out", characters / "bars.svg")
    assert prpn(*words, "--lines", 10**20).status == 0


def test_a_single_word(characters: Path, prpn: Command) -> None:
    (characters / "text.txt").write_text("one\n")
    result = prpn("boundaries", characters / "text.txt", "-m", characters / "characters")
    assert_refused(result, 1, "no two words", "running text")
