"""Our experiments: what is trained on which files, and which figures come out of it.

experiment = files by role (training, validation, test, treebank)
           + systems: models × seeds, n-grams
           + figures: system × measure × text or treebank, beside a row of the paper
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from prpn.config import Builder, Recipe, did_you_mean, load_recipe
from prpn.errors import ConfigError
from prpn.reproduction.package import read_data_file
from prpn.reproduction.paper import MEASURE_NAMES, Measure

Role = Literal["training", "validation", "test", "treebank"]
NO_SEED = "none"
"""In place of the seed of a system that takes none."""


@dataclass(frozen=True)
class FileNeeded:
    """A file by the names it may have; or, embedded, a treebank of the package."""

    what: str
    names: tuple[str, ...] = ()
    """The first that is found is taken; `?` and `[…]` stand for letters, so that one name can be many files."""
    source: str = ""
    embedded: str = ""
    half: Literal["", "even"] = ""
    """Which lines of a treebank are scored: all, or the even ones."""


@dataclass(frozen=True)
class TrainedSystem:
    """A model by its recipe; or, with an order, an n-gram model over the recipe's tokens."""

    recipe: str
    set: tuple[str, ...] = ()
    order: int = 0
    sentences: bool = False
    """Whether histories of an n-gram stop at `</s>`."""
    cache: bool = False
    """Whether a unigram cache, tuned on the validation text, is mixed in."""

    @property
    def is_model(self) -> bool:
        """Whether it is a network, which a seed changes."""
        return not self.order

    def with_seed(self, seed: int) -> Recipe:
        """The recipe as it is run."""
        return load_recipe(self.recipe).override([*self.set, f"training.seed={seed}"])


@dataclass(frozen=True)
class Figure:
    """One measurement."""

    system: str
    measure: Measure
    on: Role
    table: str = ""
    """The table it belongs to, where this is not the experiment's."""
    row: str = ""
    """The paper's row that it stands beside."""
    cache: bool = False
    """Whether a model is mixed with a continuous cache that was tuned on the validation text."""
    protocol: str = ""
    builder: Builder = "paper"
    maximum_words: int | None = None
    spread: float = 0.0
    """Relative standard deviation between seeds."""

    @property
    def is_of_trees(self) -> bool:
        """Whether trees are scored, not text."""
        return self.on == "treebank"

    @property
    def label(self) -> str:
        """System, measure and what it was measured on: its name in records."""
        if not self.is_of_trees:
            return f"{self.system}{' + cache' if self.cache else ''}: {self.on} {MEASURE_NAMES[self.measure]}"
        limit = f", at most {self.maximum_words} words" if self.maximum_words else ""
        return f"{self.system}: F1 under {self.protocol}{limit}" + (
            f", {self.builder}" if self.builder != "paper" else ""
        )


@dataclass(frozen=True)
class Experiment:
    """One experiment, as experiments.toml describes it."""

    name: str
    sentence: str
    budget: str
    figures: tuple[Figure, ...]
    records: tuple[str, ...]
    table: str = ""
    tokenized: bool = False
    seeds: tuple[int, ...] = ()
    files: dict[Role, FileNeeded] = field(default_factory=dict)
    systems: dict[str, TrainedSystem] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """What runs it again."""
        needs_folder = any(not file.embedded for file in self.files.values())
        return f"prpn reproduce {self.name}" + (" --data FOLDER" if needs_folder else "")


def load_experiments() -> dict[str, Experiment]:
    """Read all experiments, by name."""
    values = tomllib.loads(read_data_file("experiments.toml"))
    files = {key: FileNeeded(**_with_tuples(fields)) for key, fields in values["files"].items()}

    def experiment(name: str, fields: dict[str, Any]) -> Experiment:
        parts = {
            "figures": tuple(Figure(**figure) for figure in fields["figures"]),
            "files": {role: files[key] for role, key in fields.get("files", {}).items()},
            "systems": {key: TrainedSystem(**_with_tuples(s)) for key, s in fields.get("systems", {}).items()},
        }
        return Experiment(name=name, **_with_tuples(fields) | parts)

    return {name: experiment(name, fields) for name, fields in values["experiments"].items()}


def experiment_named(name: str, known: dict[str, Experiment]) -> Experiment:
    """The experiment of this name."""
    if name not in known:
        raise ConfigError(f"no experiment called {name}{did_you_mean(name, known)}; known: {', '.join(known)}")
    return known[name]


def beside(table: str, known: Iterable[Experiment]) -> list[tuple[Experiment, Figure]]:
    """Every figure of ours that belongs to a table."""
    return [
        (experiment, figure)
        for experiment in known
        for figure in experiment.figures
        if (figure.table or experiment.table) == table
    ]


def _with_tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
