"""`prpn recipe`: all of them, and one whole."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from prpn.config import load_recipe, recipe_names
from tests.cli.command import Command, assert_refused


def test_recipes_are_listed_with_what_they_are_for(prpn: Command) -> None:
    result = prpn("recipe")
    assert (result.status, result.err) == (0, "")
    lines = result.out.splitlines()
    assert [line.split()[0] for line in lines] == recipe_names()
    assert all(line.endswith(load_recipe(line.split()[0]).description) for line in lines)
    listed = json.loads(prpn("recipe", "--json").out)["recipes"]
    assert listed == {name: load_recipe(name).description for name in recipe_names()}


def test_a_recipe_is_printed_as_the_recipe_it_is(prpn: Command, work: Path) -> None:
    for name in (*recipe_names(), str(work / "tiny.toml")):
        printed = prpn("recipe", name)
        assert (printed.status, printed.err) == (0, "")
        (work / "printed.toml").write_text(printed.out)
        assert load_recipe(str(work / "printed.toml")) == load_recipe(name)
        assert tomllib.loads(printed.out) == json.loads(prpn("recipe", name, "--json").out) | tomllib.loads(printed.out)


def test_an_unknown_recipe(prpn: Command) -> None:
    assert_refused(prpn("recipe", "quick-wrd"), 2, "no recipe called quick-wrd", "did you mean quick-word?")
