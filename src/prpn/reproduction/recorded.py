"""What was recorded of each experiment, gathered from results/ into recorded.json, which comes with the package.

A figure is found in a record of any kind:

    of a training run       validation figures of its seed
    of an evaluation        F1 of its models, by their seeds, and of the baselines
    of `prpn reproduce`     every figure of the experiment

The records of an experiment add up; one of `prpn reproduce` is whole, and takes the place of all before it. What no
record holds is not there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from prpn.reproduction.experiments import NO_SEED, Experiment, Figure, load_experiments
from prpn.reproduction.package import data_file, read_data_file
from prpn.text.atomic import replacing

FILE = "recorded.json"
Record = dict[str, Any]


@dataclass
class Recorded:
    """The figures of an experiment by seed, and where they come from."""

    figures: dict[str, dict[str, float]] = field(default_factory=dict)
    """By label of the figure, then by seed."""
    data: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the files by role."""
    runs: list[dict[str, Any]] = field(default_factory=list)
    """Record, command, commit, system (none: the only one), seconds, steps and seed of what was run."""

    def value(self, figure: Figure) -> float | None:
        """The mean over seeds; None: not recorded yet."""
        by_seed = self.figures.get(figure.label)
        return fmean(by_seed.values()) if by_seed else None

    def spread(self, figure: Figure) -> float | None:
        """The standard deviation between seeds; None where there are not two."""
        by_seed = self.figures.get(figure.label, {})
        return stdev(by_seed.values()) if len(by_seed) > 1 else None

    @property
    def seconds(self) -> float | None:
        """How long all runs took, as far as it was recorded."""
        return self.seconds_of(None)

    def seconds_of(self, system: str | None) -> float | None:
        """How long the runs of a system took."""
        known = [
            run["seconds"]
            for run in self.runs
            if run["seconds"] is not None and (system is None or run["system"] in (system, None))
        ]
        return sum(known) if known else None


def gather(results: Path) -> dict[str, Recorded]:
    """Read results/ for every experiment."""
    return {name: _gathered(experiment, results) for name, experiment in load_experiments().items()}


def write_recorded(results: Path) -> None:
    """Renew recorded.json."""
    values = {name: asdict(recorded) for name, recorded in gather(results).items()}
    with replacing(data_file(FILE)) as file:
        file.write((json.dumps(values, indent=1, ensure_ascii=False) + "\n").encode())


def read_recorded() -> dict[str, Recorded]:
    """Read recorded.json."""
    return {name: Recorded(**values) for name, values in json.loads(read_data_file(FILE)).items()}


def _gathered(experiment: Experiment, results: Path) -> Recorded:
    found = Recorded()
    for name in experiment.records:
        path = results / f"{name}.json"
        if not path.exists():
            continue
        record = json.loads(path.read_text(encoding="utf-8"))
        if "figures" in record:
            found = Recorded()
        for figure in experiment.figures:
            if by_seed := _figure_in(record, figure, experiment):
                found.figures.setdefault(figure.label, {}).update(by_seed)
        found.data |= _checksums_in(record)
        found.runs += _runs_in(record, name)
    return found


def _figure_in(record: Record, figure: Figure, experiment: Experiment) -> dict[str, float]:
    if "figures" in record:
        return dict(record["figures"].get(figure.label, {}).get("by_seed", {}))
    if "systems" not in record:
        if figure.on != "validation" or len(experiment.systems) != 1:  # which of several systems it is, nobody knows
            return {}
        return {str(record["recipe"]["training"]["seed"]): record["validation"][figure.measure]}
    conditions = (record["builder"], record["cleaning"]["maximum"])
    if not figure.is_of_trees or conditions != (figure.builder, figure.maximum_words):
        return {}
    if figure.system not in experiment.systems:
        return {NO_SEED: record["systems"][figure.system][figure.protocol]["f1"]}
    return {
        str(model["seed"]): record["systems"][name][figure.protocol]["f1"] for name, model in record["models"].items()
    }


def _checksums_in(record: Record) -> dict[str, str]:
    if "treebank_sha256" in record:
        return {"treebank": record["treebank_sha256"]}
    return {role: file["sha256"] for role, file in record["data"].items() if isinstance(file, dict)}


def _runs_in(record: Record, name: str) -> Iterable[dict[str, Any]]:
    seed = record.get("recipe", {}).get("training", {}).get("seed")
    common = {"record": name, "command": record["command"], "commit": record["commit"]}
    for run in record.get("runs", [{"seed": seed, **record}]):
        yield common | {key: run.get(key) for key in ("system", "seconds", "steps", "seed")}
