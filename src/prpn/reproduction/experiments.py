"""Our experiments: what is trained on which files, and which figures come out of it.

experiment = files by role (training, validation, test, treebanks by any name)
           + systems: models × seeds, n-grams, students of all seeds of some models
           + figures: system × measure × text or treebank, beside a row of the paper
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from prpn.config import Builder, Recipe, did_you_mean, load_recipe
from prpn.errors import ConfigError
from prpn.reproduction.package import read_data_file
from prpn.reproduction.paper import MEASURE_NAMES, Measure

Role = str
"""What a file is to an experiment: `training`, `validation`, `test`, or a treebank's name."""
EVERY_MODEL = "*"
"""In place of a system's name: the figure is measured of all models."""
NO_SEED = "none"
"""In place of the seed of a system that takes none."""
CACHED = " + cache"
"""What the name of a system with a cache ends with."""


@dataclass(frozen=True)
class FileNeeded:
    """A file by the names it may have, or embedded in the package; and files that are read after it."""

    what: str
    names: tuple[str, ...] = ()
    """The first that is found is taken; `?` and `[…]` stand for letters, so that one name can be many files."""
    source: str = ""
    embedded: str = ""
    half: Literal["", "odd", "even"] = ""
    """Which lines of a treebank are scored: all, or every second one."""
    words: bool = False
    """Whether it is a treebank of which words and punctuation alone are read, as a text."""
    then: tuple[FileNeeded, ...] = ()


@dataclass(frozen=True)
class TrainedSystem:
    """A model by its recipe; with an order, an n-gram model over its tokens; or a student of some systems' models."""

    recipe: str = ""
    set: tuple[str, ...] = ()
    order: int = 0
    sentences: bool = False
    """Whether histories of an n-gram stop at `</s>`."""
    cache: bool = False
    """Whether a unigram cache, tuned on the validation text, is mixed in."""
    punctuation: bool = True
    """Whether a model reads the punctuation of the texts it is trained and chosen by."""
    taught_by: tuple[str, ...] = ()
    """The systems whose models, one a seed, parse the training text together."""
    best: int = 0
    """How many of these: those that raw text speaks for; 0: all."""
    judged: bool = False
    """Whether the first of these builds the trees in the way that raw text speaks for, not in its own."""
    student: dict[str, Any] = field(default_factory=dict)
    """How a student is made: fields of `prpn.distillation.StudentConfig`."""

    @property
    def is_model(self) -> bool:
        """Whether it is a network that learns from text."""
        return bool(self.recipe and not self.order)

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
    builder: Builder | Literal["judged", "own"] = "paper"
    """`judged`: for each model the one that `prpn judge` finds best; `own`: the one that it has."""
    maximum_words: int | None = None
    spread: float = 0.0
    """Relative standard deviation between seeds."""

    @property
    def is_of_trees(self) -> bool:
        """Whether trees are scored, not text."""
        return self.measure == "f1"

    @property
    def label(self) -> str:
        """System, measure and what it was measured on: its name in records."""
        if not self.is_of_trees:
            return f"{self.system}{CACHED if self.cache else ''}: {self.on} {MEASURE_NAMES[self.measure]}"
        limit = f"at most {self.maximum_words} words" if self.maximum_words else ""
        builder = self.builder if self.builder != "paper" else ""
        treebank = self.on if self.on != "treebank" else ""
        return ", ".join(filter(None, [f"{self.system}: F1 under {self.protocol}", limit, builder, treebank]))


@dataclass(frozen=True)
class Experiment:
    """One experiment, as experiments.toml describes it."""

    name: str
    sentence: str
    budget: str
    figures: tuple[Figure, ...]
    records: tuple[str, ...]
    table: str = ""
    base: str = ""
    """The system from which all others differ in one respect: such a study has a table of its own."""
    variant_of: str = ""
    """The experiment that differs in its budget only and stands for both where there is room for one."""
    tokenized: bool = False
    seeds: tuple[int, ...] = ()
    files: dict[Role, FileNeeded] = field(default_factory=dict)
    systems: dict[str, TrainedSystem] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """What runs it again."""
        needs_folder = any(not part.embedded for file in self.files.values() for part in (file, *file.then))
        return f"prpn reproduce {self.name}" + (" --data FOLDER" if needs_folder else "")


def load_experiments() -> dict[str, Experiment]:
    """Read all experiments, by name."""
    values = tomllib.loads(read_data_file("experiments.toml"))
    alone = {key: FileNeeded(**_with_tuples(fields)) for key, fields in values["files"].items()}
    files = {
        key: replace(file, then=tuple(alone[str(other)] for other in file.then)) for key, file in alone.items()
    }  # fmt: skip

    def experiment(name: str, fields: dict[str, Any]) -> Experiment:
        systems = {key: TrainedSystem(**_with_tuples(s)) for key, s in fields.get("systems", {}).items()}
        models = [key for key, system in systems.items() if system.is_model]
        parts = {
            "figures": tuple(
                Figure(**figure | {"system": system})
                for figure in fields["figures"]
                for system in (models if figure["system"] == EVERY_MODEL else [figure["system"]])
            ),
            "files": {role: files[key] for role, key in fields.get("files", {}).items()},
            "systems": systems,
        }
        return Experiment(name=name, **_with_tuples(fields) | parts)

    return {name: experiment(name, fields) for name, fields in values["experiments"].items()}


def experiment_named(name: str, known: dict[str, Experiment]) -> Experiment:
    """The experiment of this name."""
    if name not in known:
        raise ConfigError(f"no experiment called {name}{did_you_mean(name, known)}; known: {', '.join(known)}")
    return known[name]


def beside(table: str, known: Iterable[Experiment]) -> list[tuple[Experiment, Figure]]:
    """Every figure of ours that belongs to a table; those of studies belong to none but their own."""
    return [
        (experiment, figure)
        for experiment in known
        for figure in experiment.figures
        if (figure.table or experiment.table) == table and not experiment.base
    ]


def _with_tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
