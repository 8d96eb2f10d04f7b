"""The verb recipe: what there is to train by, and every field of one."""

from __future__ import annotations

from typing import Annotated

import typer

from prpn.cli.completion import recipes
from prpn.cli.options import Json, app, print_json


@app.command()
def recipe(
    name: Annotated[
        str | None, typer.Argument(autocompletion=recipes, help="A recipe, by name or as a file; without it all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the recipes, or print one whole: every field, its value, and what it does.

    What is printed is a recipe again, to be changed and given to `prpn train`. `docs/recipes.md` has all fields in a
    table.

    Example: `prpn recipe quick-word > mine.toml`
    """
    from prpn.config import load_recipe, recipe_names
    from prpn.report.recipes import as_toml

    if name is not None:
        chosen = load_recipe(name)
        if as_json:
            print_json(chosen.to_json())
        else:
            print(as_toml(chosen), end="")
        return
    known = {each: load_recipe(each).description for each in recipe_names()}
    if as_json:
        print_json({"recipes": known})
        return
    width = max(map(len, known))
    for each, description in known.items():
        print(f"{each:<{width}}  {description}")
