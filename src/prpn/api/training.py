"""Training by one call: raw text in, a model folder and the model out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from prpn.api.model import Model, load
from prpn.config import Recipe, load_recipe
from prpn.errors import InputError

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


def train(
    recipe: str | Path | Recipe,
    texts: Paths = (),
    *,
    out: str | Path,
    valid: str | Path | None = None,
    treebank: Paths = (),
    tokenized: bool = False,
    init: str | Path | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    resume: bool = False,
    device: str = "cpu",
    progress: bool = False,
) -> Model:
    """Train a model on raw text: `prpn train` from Python.

    Nothing is printed unless asked for, and the process stays as it was: the run has a thread of its own. An interrupt
    saves the run before it is passed on; call again with `resume=True` to go on.

    Args:
        recipe: A recipe's name such as `quick-word`, a TOML file, or a `Recipe`.
        texts: A file with one sentence a line, or several; none for a recipe that brings its own text.
        out: The model folder to make.
        valid: Held-out text; the end of the text unless given.
        treebank: Trees to score at each evaluation: watched, never used to choose weights.
        tokenized: The text is split already: split at spaces only.
        init: A model to start from instead of random weights.
        seed: Seed of everything random; a seed makes a run repeat.
        settings: Fields of the recipe to override, such as `{"training.epochs": 5}`.
        resume: Go on from the checkpoint in `out`, if any.
        device: Where to compute, such as `cuda`.
        progress: Whether to show how the run goes on standard error.

    Returns:
        The model with the best weights by held-out loss, as `load(out)` gives it.

    Raises:
        InputError: A file or folder cannot be used.
        ConfigError: The recipe does not exist, or its settings make no sense.

    """
    from prpn.training.run import train as run

    chosen = recipe if isinstance(recipe, Recipe) else load_recipe(str(recipe))
    overrides = {**(settings or {}), **({} if seed is None else {"training.seed": seed})}
    run(
        chosen.with_settings(overrides),
        out,
        texts=_names(texts, "texts"),
        validation=None if valid is None else str(valid),
        treebanks=_names(treebank, "treebank"),
        tokenized=tokenized,
        initial=init,
        resume=resume,
        device=device,
        quiet=not progress,
    )
    return load(out, device)


def _names(paths: Paths, what: str) -> list[str]:
    if isinstance(paths, str | PathLike):
        return [str(paths)]
    if not isinstance(paths, Sequence) or not all(isinstance(path, str | PathLike) for path in paths):
        raise InputError(what, f"is of type {type(paths).__name__}", "give the name of a file, or a list of names")
    return list(map(str, paths))
