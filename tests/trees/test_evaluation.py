"""Whole evaluations of a small treebank, with models of random weights."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prpn.baselines.trees import left, right
from prpn.errors import InputError
from prpn.parsing.parser import Parser
from prpn.trees.average import average
from prpn.trees.evaluation import (
    DRAWS,
    System,
    baseline_systems,
    evaluate,
    evaluate_parsers,
)
from prpn.trees.protocols import PROTOCOLS
from prpn.trees.scores import Bootstrap, difference, f1_between, figures
from tests.reference import scores as reference
from tests.refusals import raises_config_error
from tests.trees.small_treebank import ALL, BASELINES, BROKEN, FIGURES, golds_of, own_golds, parser, treebank, trees_of
from tests.trees.test_protocols import figures_of

COUNTED = 9


# What is there


def test_baselines_alone(tmp_path: Path) -> None:
    result = evaluate(treebank(tmp_path), [], ALL, "paper")
    assert list(result.systems) == BASELINES
    for name in BASELINES:
        assert list(result.systems[name]) == list(PROTOCOLS)
    assert (result.differences, result.seeds, result.self_f1, result.diagnoses) == ({}, {}, None, {})
    assert evaluate_parsers(treebank(tmp_path), {}, ALL).to_json() == result.to_json()


def test_json(tmp_path: Path) -> None:
    loaded = treebank(tmp_path, BROKEN, maximum=12, skip_broken=True)
    models = {"one": parser(1), "two": parser(2, "paper", "unbiased")}
    found = evaluate_parsers(loaded, models, ALL, with_average=True).to_json()
    assert list(found) == [
        "treebank", "sentences", "words", "broken", "cleaning", "builder", "systems", "lengths", "by_length", "labels",
        "by_label", "differences", "seeds", "self_f1", "agreement", "diagnostics",
    ]  # fmt: skip
    assert found["treebank"] == str(tmp_path / "own.trees")
    assert found["sentences"] == len(loaded.counted()) == COUNTED
    assert found["words"] == sum(map(len, golds_of(loaded)))
    assert found["broken"] == len(loaded.broken) == 2
    assert found["cleaning"] == {"keep": "penn", "lowercase": False, "digits": "keep", "maximum": 12}
    assert found["builder"] == "paper"
    names = [*BASELINES, "one", "two", "average"]
    for part in ("systems", "by_length", "by_label"):
        assert list(found[part]) == names
    for system in found["systems"].values():
        assert list(system) == list(PROTOCOLS)
        for figure in system.values():
            assert set(figure) == FIGURES
            assert all(type(value) is float and 0 <= value <= 100 for value in figure.values())
    for name, others in found["differences"].items():
        before = names[len(BASELINES) : names.index(name)]
        assert list(others) == ["right", "random-distances", *before]
        for by_protocol in others.values():
            assert list(by_protocol) == list(PROTOCOLS)
            assert all(set(gap) == {"difference", "low", "high", "p"} for gap in by_protocol.values())
    assert list(found["seeds"]) == list(PROTOCOLS)
    assert all(set(seeds) == {"mean", "spread", "best"} for seeds in found["seeds"].values())
    assert list(found["diagnostics"]) == ["one", "two"]
    diagnosis = {
        "left_overlap", "right_overlap", "mean_depth", "tied_sentences", "saturated_distances", "unknown_words",
        "collapsed", "foreign",
    }  # fmt: skip
    assert all(set(shape) == diagnosis for shape in found["diagnostics"].values())
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_evaluations_can_be_repeated(tmp_path: Path) -> None:
    first, second = (evaluate_parsers(treebank(tmp_path), {"one": parser()}, ALL).to_json() for _ in range(2))
    assert json.dumps(first) == json.dumps(second)


def test_protocols_in_the_order_asked_for(tmp_path: Path) -> None:
    asked = [PROTOCOLS["kim"], PROTOCOLS["klein"]]
    result = evaluate_parsers(treebank(tmp_path), {"one": parser(1), "two": parser(2)}, asked)
    everything = evaluate_parsers(treebank(tmp_path), {"one": parser(1), "two": parser(2)}, ALL)
    for name, found in result.systems.items():
        assert list(found) == ["kim", "klein"]
        assert found == {protocol: everything.systems[name][protocol] for protocol in found}
    assert result.self_f1 == everything.self_f1


def test_progress_is_told_of_every_pass_over_the_sentences(tmp_path: Path) -> None:
    told: list[int] = []
    evaluate_parsers(treebank(tmp_path), {"one": parser()}, ALL, progress=told.append)
    assert told == [COUNTED] * (2 * len(BASELINES) + 2), "drawn or parsed, then scored"


# The figures


@pytest.mark.parametrize("name", PROTOCOLS)
def test_figures_are_those_of_the_definition(tmp_path: Path, name: str) -> None:
    loaded = treebank(tmp_path)
    systems = evaluate_parsers(loaded, {"one": parser()}, ALL).systems
    golds = own_golds()
    sentences = [reference.words(gold) for gold in golds]
    expected = {
        "left": reference.score(golds, list(map(reference.left, sentences)), name),
        "right": reference.score(golds, list(map(reference.right, sentences)), name),
        "balanced": reference.score(golds, list(map(reference.balanced, sentences)), name),
        "upper": reference.score(golds, list(map(reference.upper, golds)), name),
        "one": figures_of(golds_of(loaded), trees_of(parser(), golds_of(loaded)), name),
    }
    for system, values in expected.items():
        found = systems[system][name]
        assert (found.precision, found.recall, found.f1) == pytest.approx(values), system


def test_intervals_come_from_the_same_resamples(tmp_path: Path) -> None:
    loaded = treebank(tmp_path)
    result = evaluate_parsers(loaded, {"one": parser(1), "two": parser(2)}, ALL)
    golds, bootstrap = golds_of(loaded), Bootstrap(COUNTED)
    lengths = np.array([len(gold) for gold in golds])
    for protocol in ALL:
        both = []
        for seed, name in ((1, "one"), (2, "two")):
            pairs = zip(
                map(protocol.brackets, trees_of(parser(seed), golds)), map(protocol.brackets, golds), strict=True
            )
            counts = np.array([[(len(ours & gold), len(ours), len(gold)) for ours, gold in pairs]])
            included = protocol.included(lengths)
            samples = bootstrap.samples(counts, protocol, included)
            assert result.systems[name][protocol.name] == figures(counts, protocol, included, samples)
            both.append((result.systems[name][protocol.name], samples))
        assert result.differences["two"]["one"][protocol.name] == difference(*both[1], *both[0])


def test_random_baselines_are_means_over_draws(tmp_path: Path) -> None:
    loaded = treebank(tmp_path)
    result = evaluate(loaded, [], ALL, "unbiased")
    for system in baseline_systems(golds_of(loaded), "unbiased"):
        random = system.name in ("random", "random-distances")
        assert len(system.draws) == (DRAWS if random else 1)
        assert (len(set(map(tuple, system.draws))) == DRAWS) == random
        for name in PROTOCOLS:
            f1 = [figures_of(golds_of(loaded), trees, name)[2] for trees in system.draws]
            assert result.systems[system.name][name].f1 == pytest.approx(np.mean(f1))


def test_by_number_of_words(tmp_path: Path) -> None:
    loaded = treebank(tmp_path)
    result = evaluate_parsers(loaded, {"one": parser()}, ALL)
    assert result.lengths == {"1-10": 8, "11-20": 1}
    golds = golds_of(loaded)
    trees = {"one": trees_of(parser(), golds), "left": [left(gold.words) for gold in golds]}
    for name, predicted in trees.items():
        for protocol in ALL:
            parts = result.by_length[name][protocol.name]
            sizes = {}
            for length, (least, most) in {"1-10": (1, 10), "11-20": (11, 20)}.items():
                shortest = max(least, protocol.fewest_words)
                pairs = [pair for pair in zip(golds, predicted, strict=True) if shortest <= len(pair[0]) <= most]
                assert parts[length] == pytest.approx(figures_of(*zip(*pairs, strict=True), protocol.name)[2])
                sizes[length] = len(pairs)
            if not protocol.over_corpus:
                total = sum(parts[length] * size for length, size in sizes.items())
                assert result.systems[name][protocol.name].f1 == pytest.approx(total / sum(sizes.values()))


def test_lengths_that_a_protocol_does_not_score_are_left_out(tmp_path: Path) -> None:
    long = "( (S " + " ".join(["(NN man)"] * 11) + ") )"
    result = evaluate(treebank(tmp_path, "( (NP (NN dog)) )\n" + long), [], ALL, "paper")
    assert result.lengths == {"1-10": 1, "11-20": 1}
    assert list(result.by_length["left"]["kim"]) == ["11-20"]
    assert list(result.by_length["left"]["klein"]) == ["1-10", "11-20"]


def test_very_long_sentences(tmp_path: Path) -> None:
    lengths = [10, 11, 20, 21, 30, 31, 40, 41, 90]
    text = "\n".join("( (S " + "(NN dog) " * length + ") )" for length in lengths)
    result = evaluate(treebank(tmp_path, text), [], ALL, "paper")
    assert result.lengths == {"1-10": 1, "11-20": 2, "21-30": 2, "31-40": 2, "41+": 2}


# Models


def test_a_model_goes_through_its_own_builder_unless_told(tmp_path: Path) -> None:
    loaded = treebank(tmp_path)
    golds = golds_of(loaded)
    model = parser(3, builder="unbiased")
    assert trees_of(model, golds, "paper") != trees_of(model, golds, "unbiased")
    for builder in (None, "paper", "unbiased"):
        result = evaluate_parsers(loaded, {"one": model}, ALL, builder)
        used = builder or "unbiased"
        assert result.builder == used
        assert result.systems["one"]["kim"].f1 == figures_of(golds, trees_of(model, golds, used), "kim")[2]
        control = evaluate(loaded, [], ALL, used).systems["random-distances"]
        assert result.systems["random-distances"] == control


def test_several_models(tmp_path: Path) -> None:
    loaded = treebank(tmp_path)
    models = {f"seed {seed}": parser(seed) for seed in (1, 2, 3)}
    result = evaluate_parsers(loaded, models, ALL)
    assert list(result.seeds) == list(PROTOCOLS)
    for name, seeds in result.seeds.items():
        f1 = [result.systems[model][name].f1 for model in models]
        mean = sum(f1) / 3
        assert seeds.mean == pytest.approx(mean)
        assert seeds.spread == pytest.approx(math.sqrt(sum((value - mean) ** 2 for value in f1) / 2))
        assert seeds.best == max(f1)
    trees = [trees_of(model, golds_of(loaded)) for model in models.values()]
    pairs = [(trees[0], trees[1]), (trees[0], trees[2]), (trees[1], trees[2])]
    agreement = [f1_between(one, other, PROTOCOLS["kim"]) for one, other in pairs]
    assert result.self_f1 == pytest.approx(sum(agreement) / 3)
    assert 0 < result.self_f1 < 100
    assert result.agreement["seed 3"] == pytest.approx((agreement[1] + agreement[2]) / 2)


def test_a_model_agrees_with_itself(tmp_path: Path) -> None:
    result = evaluate_parsers(treebank(tmp_path), {"one": parser(), "again": parser()}, ALL)
    assert result.self_f1 == 100
    assert all(seeds.spread == 0 and seeds.mean == pytest.approx(seeds.best) for seeds in result.seeds.values())
    assert {gap.p for gap in result.differences["again"]["one"].values()} == {1}
    one = evaluate_parsers(treebank(tmp_path), {"one": parser()}, ALL)
    assert (one.seeds, one.self_f1) == ({}, None)


def test_the_average_is_a_system_but_no_seed(tmp_path: Path) -> None:
    loaded = treebank(tmp_path)
    models = {f"seed {seed}": parser(seed) for seed in (1, 2, 3)}
    result = evaluate_parsers(loaded, models, ALL, with_average=True)
    without = evaluate_parsers(loaded, models, ALL)
    trees = [trees_of(model, golds_of(loaded)) for model in models.values()]
    consensus = [average(found) for found in zip(*trees, strict=True)]
    for name in PROTOCOLS:
        found = result.systems["average"][name]
        expected = figures_of(golds_of(loaded), consensus, name)
        assert (found.precision, found.recall, found.f1) == pytest.approx(expected)
    assert (result.seeds, result.self_f1, result.diagnoses) == (without.seeds, without.self_f1, without.diagnoses)
    assert list(result.differences["average"]) == ["right", "random-distances", *models]


def test_predicted_trees_of_any_system(tmp_path: Path) -> None:
    loaded = treebank(tmp_path)
    golds = golds_of(loaded)
    result = evaluate(
        loaded, [System("gold", [golds]), System("flat", [[right(g.words) for g in golds]])], ALL, "paper"
    )
    assert all(found.f1 == 100 for found in result.systems["gold"].values())
    assert result.systems["flat"] == result.systems["right"]
    assert all(gap.p < 0.05 for gap in result.differences["gold"]["right"].values())
    assert all(gap.p == 1 for gap in result.differences["flat"]["right"].values())


# What cannot be evaluated


@pytest.mark.parametrize("models", [{}, {"one": parser()}])
def test_nothing_left_to_score(tmp_path: Path, models: dict[str, Parser]) -> None:
    silent = treebank(tmp_path, "( (X (: --)) )\n( (NP (NNS dogs) (. .)) )\n", maximum=1)
    one_word = evaluate_parsers(silent, models, [PROTOCOLS["klein"]])
    assert one_word.systems["left"]["klein"].f1 == 100
    with pytest.raises(InputError, match=r"own.trees: no sentence of 2 or more words is left to score by kim; raise"):
        evaluate_parsers(silent, models, ALL)
    for text, maximum in (("( (X (: --)) )\n( (. .) )\n", None), ("( (NP (NN dog) (NN man)) )\n", 1)):
        with pytest.raises(InputError, match=r"own.trees: no sentence is left to score; raise --max-words"):
            evaluate_parsers(treebank(tmp_path, text, maximum), models, ALL)
        with pytest.raises(InputError, match="no sentence is left to score"):
            evaluate(treebank(tmp_path, text, maximum), [], ALL, "paper")


@pytest.mark.parametrize("names", [["right"], ["upper"], ["one", "two", "one"]])
def test_names_tell_systems_apart(tmp_path: Path, names: list[str]) -> None:
    loaded = treebank(tmp_path)
    trees: list[Any] = [golds_of(loaded)]
    with raises_config_error(f"two systems are called '{names[0]}'", "rename one"):
        evaluate(loaded, [System(name, trees) for name in names], ALL, "paper")


def test_an_average_needs_a_model(tmp_path: Path) -> None:
    with raises_config_error("no model to average"):
        evaluate_parsers(treebank(tmp_path), {}, ALL, with_average=True)
    with raises_config_error("two systems are called 'average'"):
        evaluate_parsers(treebank(tmp_path), {"average": parser()}, ALL, with_average=True)
