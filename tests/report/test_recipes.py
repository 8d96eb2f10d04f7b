"""What is said of recipes is what they are."""

from __future__ import annotations

import dataclasses
import math
import tomllib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from prpn.config import SECTIONS, ModelConfig, Recipe, TrainingConfig, load_recipe, recipe_from, recipe_names
from prpn.report.recipes import as_toml, descriptions, fields_table

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def test_every_field_is_described_in_one_sentence() -> None:
    wanted = [f"{kind.__name__}.{field.name}" for kind in (*SECTIONS.values(), Recipe) for field in fields_of(kind)]
    for name in wanted:
        assert descriptions()[name].endswith((".", ")")), name
        assert "\n" not in descriptions()[name], name


def fields_of(kind: type) -> list[dataclasses.Field[object]]:
    return [field for field in dataclasses.fields(kind) if field.name not in SECTIONS]


@given(TEXT, st.floats(1e-30, 1e30) | st.just(math.inf), st.floats(1e-30, 1), st.integers(0, 2**64 - 1))
def test_a_recipe_comes_back_from_its_toml(text: str, temperature: float, rate: float, seed: int) -> None:
    model, training = ModelConfig(temperature=temperature), TrainingConfig(epochs=1, learning_rate=rate, seed=seed)
    recipe = Recipe("some name", text, model=model, training=training)
    assert recipe_from(tomllib.loads(as_toml(recipe)), "other") == recipe


def test_each_line_has_its_word() -> None:
    for name in recipe_names():
        for line in as_toml(load_recipe(name)).splitlines():
            assert line == "" or line.startswith("[") or "  # " in line


def test_the_table_says_who_differs() -> None:
    rows = {line.split("`")[1]: line for line in fields_table().splitlines() if line.startswith("| `")}
    assert "`384`: quick-word" in rows["hidden"]
    assert "| `0.003` |" in rows["learning_rate"]
    assert '`"characters"`: long-char, ptb-char, quick-char, text8-char' in rows["tokenizer"]


def test_the_page_has_every_field() -> None:
    page = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")
    assert fields_table() in page
