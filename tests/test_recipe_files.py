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
from prpn.errors import InputError, PrpnError
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
        (b"[model]\nhiden = 4\n", (r"broken\.toml: unknown key model\.hiden", r"did you mean hidden\?")),
        (b"model = 4\n", (r"broken\.toml: model must be a section", "4")),
        (b"[training]\nepochs = '2'\n", (r"broken\.toml: training\.epochs = '2': expected a whole number",)),
        (b"[training]\nlearning_rate = 1" + b"0" * 400, (r"broken\.toml: training\.learning_rate",)),
        (b"[training]\nlearning_rate = 1" + b"0" * 5000, (r"broken\.toml: not valid TOML", "5001 digits")),
        (b"name = '../../esc'\n", (r"broken\.toml: name = '../../esc'",)),
    ],
)
def test_a_broken_recipe_file_is_refused(content: bytes, fragments: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with pytest.raises(PrpnError, match="(?s)^[^\n]*" + "[^\n]*".join(fragments) + "[^\n]*$"):
        load_recipe(str(path))


def test_a_byte_order_mark_is_no_part_of_a_recipe(tmp_path: Path) -> None:
    path = tmp_path / "marked.toml"
    path.write_text("[model]\nhidden = 8\n", "utf-8-sig")
    assert load_recipe(str(path)) == Recipe("marked", model=ModelConfig(hidden=8))


def test_a_recipe_that_cannot_be_read_is_no_model_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "closed.toml"
    path.touch()
    (tmp_path / "config.json").touch()

    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(PrpnError, match=r"closed\.toml: cannot be read \(Permission denied\)"):
        load_recipe(str(path))
    with pytest.raises(InputError, match=r"config\.json: cannot be read .*; is this a model folder\?$"):
        read_saved_recipe(tmp_path / "config.json")


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


@pytest.mark.parametrize(
    "content", ["{", "", "[1]", "[]", '"text"', "3", "null", '{"model": {"hiden": 4}}', "9" * 5000]
)
def test_a_broken_config_json_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(content, "utf-8")
    with pytest.raises(PrpnError, match=r"^[^\n]*config\.json:[^\n]*$"):
        read_saved_recipe(path)


def test_a_config_json_without_a_name_is_called_as_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert read_saved_recipe(Path("config.json")).name == tmp_path.name
