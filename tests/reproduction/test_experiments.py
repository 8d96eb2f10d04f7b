"""The experiments fit the paper's tables, the recipes and the records."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import get_args

import pytest

from prpn.baselines.trees import baselines
from prpn.config import SECTIONS, Builder
from prpn.distillation.run import StudentConfig
from prpn.reproduction.experiments import CACHED, Experiment, Figure, beside, experiment_named, load_experiments
from prpn.reproduction.package import data_file
from prpn.reproduction.paper import load_tables
from prpn.reproduction.recorded import gather, read_recorded
from tests.refusals import raises_config_error

RESULTS = Path(__file__).parents[2] / "results"
EXPERIMENTS = load_experiments()
TABLES = load_tables()
each_experiment = pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda experiment: experiment.name)


@each_experiment
def test_figures_have_what_they_need(experiment: Experiment) -> None:
    labels = [figure.label for figure in experiment.figures]
    assert len(set(labels)) == len(labels) > 0
    for figure in experiment.figures:
        system = experiment.systems.get(figure.system)
        assert system or figure.system in baselines("paper")
        assert figure.is_of_trees == (figure.measure == "f1") == bool(figure.protocol)
        assert figure.on in experiment.files or figure.on == "validation"
        assert system or figure.builder in get_args(Builder)
        assert (figure.spread > 0) == (system is not None and not system.order)
        assert not figure.cache or (system is not None and system.is_model and "validation" in experiment.files)
    assert not experiment.variant_of or EXPERIMENTS[experiment.variant_of].files.keys() >= {"training", "validation"}
    for name, system in experiment.systems.items():
        assert system.cache == name.endswith(CACHED)
        assert not system.is_model or experiment.seeds
        assert 0 <= system.best <= len(system.taught_by) * len(experiment.seeds)
        for teacher in system.taught_by:
            assert experiment.systems[teacher].is_model
            assert experiment.systems[teacher].punctuation
            assert StudentConfig(**system.student)
        if system.order and "training" in experiment.files:
            assert not experiment.files["training"].words
        if system.recipe:
            assert system.with_seed(7).training.seed == 7


@each_experiment
def test_figures_stand_beside_rows_of_the_same_measure(experiment: Experiment) -> None:
    for figure in experiment.figures:
        table = figure.table or experiment.table
        if figure.row:
            row = TABLES[table].row(figure.row)
            assert figure.measure == TABLES[table].measure
            assert figure.on in ("test", "treebank")
            assert figure.protocol == row.protocol
        if table:
            assert (experiment, figure) in beside(table, EXPERIMENTS.values())


@each_experiment
def test_missing_files_say_where_they_come_from(experiment: Experiment) -> None:
    parts = [part for file in experiment.files.values() for part in (file, *file.then)]
    for part in parts:
        assert part.what
        assert bool(part.source and part.names) != bool(part.embedded)
    assert ("--data" in experiment.command) == any(part.names for part in parts)


def test_ablation_has_the_rows_of_table_3_with_equal_budgets() -> None:
    ablation = EXPERIMENTS["ablation"]
    assert [figure.row for figure in ablation.figures] == [row.system for row in TABLES["ablation"].rows]
    recipes = [system.with_seed(1) for system in ablation.systems.values()]
    assert len({recipe.training for recipe in recipes}) == 1
    parts = [(r.model.parsing, r.model.reading_attention, r.model.predict_attention) for r in recipes]
    assert parts == [
        (True, True, True), (False, True, True), (True, False, True), (True, True, False), (False, False, False)
    ]  # fmt: skip


def test_an_unknown_name_is_refused() -> None:
    with raises_config_error("no experiment called ablatoin", r"did you mean ablation\?", "known: demo"):
        experiment_named("ablatoin", EXPERIMENTS)


def test_what_comes_with_the_package_is_what_results_say() -> None:
    assert read_recorded() == gather(RESULTS), "run `make tables`"


@each_experiment
def test_recorded_runs_are_those_of_the_recipe(experiment: Experiment) -> None:
    for name in experiment.records:
        path = RESULTS / f"{name}.json"
        record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if "recipe" in record:
            (system,) = experiment.systems.values()
            seed = record["recipe"]["training"]["seed"]
            assert seed in experiment.seeds
            recipe = system.with_seed(seed).to_json()
            for section in SECTIONS:
                assert record["recipe"][section].items() <= recipe[section].items()
        elif not name.startswith("reproduced/"):
            assert record, f"{name} is not in results/"


def test_the_records_that_there_are() -> None:
    recorded = read_recorded()
    figures = {figure.label: figure for figure in EXPERIMENTS["quick-parsing-6-epochs"].figures}
    found = recorded["quick-parsing-6-epochs"]
    assert set(found.figures) == set(figures)
    assert all(set(by_seed) == {"1", "2", "3"} for by_seed in found.figures.values())
    value = found.value(figures["PRPN: F1 under released, at most 10 words"])
    assert value == pytest.approx(61.23, abs=0.01)
    assert set(found.data) == {"training", "validation", "treebank"}
    assert found.seconds
    assert found.seconds > 3600
    for run in found.runs:
        assert run["command"].startswith("prpn ")
        assert len(run["commit"]) == 40


def test_spreads_are_those_that_were_seen() -> None:
    seen = 0
    for name, found in read_recorded().items():
        alike: dict[Figure, list[float]] = {}  # what is measured of every model has one spread
        for figure in EXPERIMENTS[name].figures:
            values = list(found.figures.get(figure.label, {}).values())
            if len(values) > 2:
                one = figure if not EXPERIMENTS[name].base else replace(figure, system="")
                alike.setdefault(one, []).append(stdev(values) / fmean(values))
        for figure, spreads in alike.items():
            together = math.sqrt(fmean(spread**2 for spread in spreads))
            # Three seeds may agree by chance: what is small may be stated as up to 5 %.
            assert 0.8 * together <= figure.spread <= max(1.2 * together, 0.05), (name, figure)
            seen += 1
    assert seen


def test_data_files_come_with_the_package() -> None:
    project = (RESULTS.parent / "pyproject.toml").read_text(encoding="utf-8")
    for name in ("tables.toml", "experiments.toml", "recorded.json"):
        assert data_file(name).is_file()
        assert f'"reproduction/*{Path(name).suffix}"' in project
