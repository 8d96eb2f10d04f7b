"""Recipes as they are read: whole, as TOML with a word on every field, and all fields in one table.

What a field does is said once, below it in `prpn.config`, and read from there.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import math
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from prpn import config
from prpn.config import SECTIONS, Recipe, load_recipe, recipe_names

_WIDEST = 40
"""Columns of `key = value` before its comment; a longer one gets its comment all the same."""


@cache
def descriptions() -> dict[str, str]:
    """What each field does, by its class and name such as `ModelConfig.hidden`."""
    found = {}
    for defined in ast.parse(inspect.getsource(config)).body:
        if isinstance(defined, ast.ClassDef):
            for field, below in zip(defined.body, defined.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    match below:
                        case ast.Expr(ast.Constant(str(text))):
                            found[f"{defined.name}.{field.target.id}"] = text
    return found


def as_toml(recipe: Recipe) -> str:
    """The recipe with every field, as a file that is the same recipe again."""
    lines = _assignments(recipe, ["name", "description"])
    for section in SECTIONS:
        values = getattr(recipe, section)
        lines += ["", f"[{section}]", *_assignments(values, [field.name for field in dataclasses.fields(values)])]
    return "\n".join(lines) + "\n"


def fields_table() -> str:
    """One table a section: name, type, default, what a field does, and the recipes that set it to something else."""
    recipes = [load_recipe(name) for name in recipe_names()]
    parts = []
    for section, kind in SECTIONS.items():
        types = get_type_hints(kind)
        rows = [f"## `[{section}]`", "", "| field | type | default | what it does | otherwise in |", "|---" * 5 + "|"]
        for field in dataclasses.fields(kind):
            others: dict[str, list[str]] = {}
            for recipe in recipes:
                value = getattr(getattr(recipe, section), field.name)
                if value != field.default:
                    others.setdefault(_written(value), []).append(recipe.name)
            otherwise = "; ".join(f"`{value}`: {', '.join(names)}" for value, names in others.items())
            what = descriptions()[f"{kind.__name__}.{field.name}"].replace("|", "\\|")
            default = _written(field.default)
            rows.append(f"| `{field.name}` | {_kind(types[field.name])} | `{default}` | {what} | {otherwise} |")
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def _assignments(values: Any, names: list[str]) -> list[str]:
    """A line a field, the comments below each other."""
    set_ = [f"{name} = {_written(getattr(values, name))}" for name in names]
    width = max(len(line) for line in set_ if len(line) <= _WIDEST)
    return [
        f"{line:<{width}}  # {descriptions()[f'{type(values).__name__}.{name}']}"
        for line, name in zip(set_, names, strict=True)
    ]


def _written(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return "inf" if value == math.inf else repr(value)


def _kind(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return " ".join(f"`{choice}`" for choice in get_args(annotation))
    return {int: "whole number", float: "number", bool: "true or false", str: "text"}[annotation]
