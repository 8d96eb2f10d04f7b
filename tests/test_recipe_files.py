"""Recipes in files: read, written, and refused when they are broken."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from prpn import config as config_module
from prpn.config import (
    ModelConfig,
    Recipe,
    TextConfig,
    TrainingConfig,
    load_recipe,
    read_saved_recipe,
    recipe_names,
    save_recipe,
)
from tests.refusals import raises_config_error


def test_through_a_file(tmp_path: Path) -> None:
    recipe = Recipe("τ", "first line\nsecond", model=ModelConfig(temperature=math.inf, hidden=8))
    save_recipe(recipe, tmp_path / "config.json")
    assert read_saved_recipe(tmp_path / "config.json") == recipe
    assert "τ" in (tmp_path / "config.json").read_text(encoding="utf-8")


def test_a_toml_file_gives_its_recipe(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('description = "δ"\n[model]\ntemperature = inf\nhidden = 8\n[training]\nsteps = 5\n', "utf-8")
    expected = Recipe("mine", "δ", TextConfig(), ModelConfig(temperature=math.inf, hidden=8), TrainingConfig(steps=5))
    assert load_recipe(str(path)) == expected


@pytest.mark.parametrize(
    ("content", "fragments"),
    [
        (b"[model\nhidden = 4\n", ("broken.toml", "not valid TOML", "line 1")),
        (b"[model]\nhidden = \n", ("broken.toml", "not valid TOML", "line 2")),
        (b"[model]\nhidden = 4\nhidden = 6\n", ("broken.toml", "not valid TOML")),
        (b"description = '\xff'\n", ("broken.toml", "UTF-8")),
        (b"[model]\nhiden = 4\n", (r"model\.hiden", r"did you mean hidden\?")),
        (b"model = 4\n", ("model must be a section", "4")),
    ],
)
def test_a_broken_recipe_file_is_refused(content: bytes, fragments: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with raises_config_error(*fragments):
        load_recipe(str(path))


def test_a_missing_recipe_is_refused(tmp_path: Path) -> None:
    with raises_config_error("no such recipe file", "give a TOML file"):
        load_recipe(str(tmp_path / "missing.toml"))


def test_recipes_of_the_package_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ptb-word.toml").write_text("[model]\nhidden = 8\n", "utf-8")
    (tmp_path / "notes.txt").write_text("no recipe", "utf-8")
    monkeypatch.setattr(config_module, "_recipe_folder", lambda: tmp_path)
    assert recipe_names() == ["ptb-word"]
    assert load_recipe("ptb-word") == Recipe("ptb-word", model=ModelConfig(hidden=8))
    with raises_config_error("no recipe called ptb-wrod", r"did you mean ptb-word\?", "known: ptb-word"):
        load_recipe("ptb-wrod")


@pytest.mark.parametrize("content", ["{", "", "[1]", "[]", '"text"', "3", "null"])
def test_a_broken_config_json_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(content, "utf-8")
    with raises_config_error(r"config\.json"):
        read_saved_recipe(path)
