"""Whole evaluations of a small treebank, with models of random weights."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prpn.baselines.trees import left, right
from prpn.config import recipe_from
from prpn.errors import InputError
from prpn.parsing.parser import Parser
from prpn.text.vocabulary import Vocabulary
from prpn.trees import Builder, Tree, has_ties
from prpn.trees.average import average
from prpn.trees.cleaning import Cleaning, Treebank, load_treebank
from prpn.trees.evaluation import (
    DRAWS,
    Diagnosis,
    System,
    baseline_systems,
    diagnose,
    evaluate,
    evaluate_parsers,
)
from prpn.trees.protocols import PROTOCOLS
from prpn.trees.scores import Bootstrap, difference, f1_between, figures
from tests.reference import scores as reference
from tests.refusals import raises_config_error
from tests.trees.test_protocols import figures_of

ALL = list(PROTOCOLS.values())
BASELINES = ["left", "right", "balanced", "random", "random-distances", "upper"]
FIGURES = {"f1", "precision", "recall", "low", "high"}

TREES = """
( (S (NP-SBJ (DT the) (JJ old) (NN man)) (VP (VBD sat) (PP-LOC (IN on) (NP (DT the) (NN bench)))) (. .)) )
( (S (NP-SBJ-1 (PRP he)) (VP (VBD saw) (NP (NP (DT a) (NN dog)) (PP (IN in) (NP (DT the) (NN park))))) (. .)) )
( (FRAG (NP (DT a) (NN dog)) (. !)) )
( (S (NP-SBJ (-NONE- *)) (VP (VB run)) (. !)) )
( (NP (NP (DT the) (NN man)) (PP=2 (IN on) (NP (DT the) (JJ old) (NN bench)))) )
( (SBARQ (WHNP-1 (WP who)) (SQ (NP-SBJ (-NONE- *T*-1)) (VP (VBD saw) (NP (PRP him)))) (. ?)) )
( (S (S (NP-SBJ (DT the) (NN dog)) (VP (VBD ran))) (, ,) (CC and) (S (NP-SBJ (DT the) (NN man)) (VP (VBD ran) (ADVP
    (RB too)) (PP (IN in) (NP (DT the) (JJ old) (NN park))))) (. .)) )
( (NP (NP (NN man)) (, ,) (NP (NN dog)) (CC and) (NP (NN bench))) )
( (S (VP (VB see) (NP (DT the) (NN park) (NN bench)))) )
( (X (: --)) )
"""
COUNTED = 9
BROKEN = TREES + "( (S (NN man) ran) )\n( (S (NP (NN man)\n"


def treebank(folder: Path, text: str = TREES, maximum: int | None = None, skip_broken: bool = False) -> Treebank:
    path = folder / "own.trees"
    path.write_text(text, encoding="utf-8")
    return load_treebank([path], Cleaning(maximum=maximum), skip_broken=skip_broken)


def parser(
    seed: int = 1,
    flavour: str = "released",
    builder: Builder = "paper",
    scale: float = 1.0,
    constant: float | None = None,
) -> Parser:
    """A model of random weights; distances before their activation grow with `scale`, or are all the same."""
    random = np.random.default_rng(seed)
    words = sorted(set(re.findall(r"[a-z]+(?=\))", TREES)))
    recipe = recipe_from(
        {
            "text": {"tokenizer": "none"},
            "model": {"flavour": flavour, "embedding": 3, "hidden": 8, "lookback": 2, "builder": builder},
        },
        "tiny",
    )
    channels = 4 if flavour == "released" else 8
    shapes = {
        "embedding.weight": (len(words) + 2, 3),
        "parsing.convolution.weight": (8, 3, 3),
        "parsing.convolution.bias": (8,),
        "parsing.norm.weight": (8,),
        "parsing.norm.bias": (8,),
        "parsing.norm.running_mean": (8,),
        "parsing.norm.running_var": (8,),
        "parsing.heads.weight": (2, channels, 1),
        "parsing.heads.bias": (2,),
    }
    weights = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    weights["parsing.norm.running_var"] = np.abs(weights["parsing.norm.running_var"]) + 0.5
    weights["parsing.heads.weight"] *= scale if constant is None else 0
    weights["parsing.heads.bias"] *= 0
    weights["parsing.heads.bias"] += constant or 0
    return Parser(recipe, Vocabulary(("<unk>", "</s>", *words)), weights)


def constituents(tree: reference.Tree, start: int = 0) -> list[tuple[int, int, str]]:
    """Brackets with their labels cut at - and =, the tree's own included."""
    if isinstance(tree, tuple):
        return []
    found, end = [], start
    for part in tree.children:
        found += constituents(part, end)
        end += reference.size(part)
    return [*found, (start, end, re.split("[-=]", tree.label)[0])]


def tags_of(tree: reference.Tree) -> list[str]:
    return [tree[0]] if isinstance(tree, tuple) else [tag for part in tree.children for tag in tags_of(part)]


def recall_by_definition(golds: Sequence[reference.Tree], predicted: Sequence[Tree]) -> dict[str, tuple[int, int]]:
    """Of each label: constituents found, constituents."""
    found, total = Counter[str](), Counter[str]()
    for gold, tree in zip(golds, predicted, strict=True):
        tags = [re.split("[-=]", tag)[0] for tag in tags_of(gold)]
        brackets = set(constituents(gold))
        brackets |= {(start, end, "DT+NN") for start, end, _ in brackets if tags[start:end] == ["DT", "NN"]}
        for start, end, label in brackets:
            if 2 <= end - start < reference.size(gold):
                total[label] += 1
                found[label] += (start, end) in tree.spans()
    return {label: (found[label], total[label]) for label in total}


def own_golds() -> list[reference.Tree]:
    return reference.penn(TREES)


def trees_of(model: Parser, sentences: Sequence[Tree], builder: Builder | None = None) -> list[Tree]:
    return [found.tree for found in model.parse_many([tree.words for tree in sentences], builder)]


def golds_of(loaded: Treebank) -> list[Tree]:
    return [sentence.tree for sentence in loaded.counted()]


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
        "by_label", "differences", "seeds", "self_f1", "diagnostics",
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
        "left_overlap", "right_overlap", "mean_depth", "tied_sentences", "saturated_distances", "collapsed"
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


def test_recall_by_label(tmp_path: Path) -> None:
    loaded = treebank(tmp_path)
    result = evaluate_parsers(loaded, {"one": parser()}, ALL)
    golds = golds_of(loaded)
    systems = {system.name: system.draws for system in baseline_systems(golds, "paper")}
    systems["one"] = [trees_of(parser(), golds)]
    for name, draws in systems.items():
        expected: dict[str, list[tuple[int, int]]] = {}
        for trees in draws:
            for label, pair in recall_by_definition(own_golds(), trees).items():
                expected.setdefault(label, []).append(pair)
        recall = {label: 100 * sum(f for f, _ in p) / sum(n for _, n in p) for label, p in expected.items()}
        assert result.by_label[name] == pytest.approx(recall)
        assert result.labels == {label: pairs[0][1] for label, pairs in expected.items()}
    assert set(result.labels) == {"NP", "VP", "PP", "S", "SQ", "DT+NN"}
    assert list(result.labels.values()) == sorted(result.labels.values(), reverse=True)
    assert set(result.by_label["upper"].values()) == {100}


def test_labels_of_equal_counts_stand_in_the_order_of_the_treebank(tmp_path: Path) -> None:
    labels = ["VP", "ADJP", "NX", "QP", "X", "SINV", "PRN", "UCP"]
    text = "( (S " + " ".join(f"({label} (NN dog) (NN man))" for label in labels) + ") )"
    result = evaluate(treebank(tmp_path, text), [], ALL, "paper")
    assert list(result.labels) == list(result.by_label["left"]) == labels


def test_no_labels(tmp_path: Path) -> None:
    result = evaluate(treebank(tmp_path, "(the (old man))\n((the dog) ran)\n"), [], ALL, "paper")
    assert (result.labels, result.by_label["right"]) == ({}, {})
    assert result.systems["upper"]["kim"].f1 == 100


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


# What went wrong


@pytest.mark.parametrize("builder", ["paper", "unbiased"])
@pytest.mark.parametrize(
    ("flavour", "constant", "saturated"),
    [("released", 0.0, 0), ("released", 6.0, 100), ("released", -6.0, 100), ("paper", 1.0, 0), ("paper", -1.0, 100)],
)
def test_constant_distances_are_a_collapse(
    tmp_path: Path, flavour: str, constant: float, saturated: float, builder: Builder
) -> None:
    model = parser(flavour=flavour, builder=builder, constant=constant)
    result = evaluate_parsers(treebank(tmp_path), {"one": model}, ALL)
    found = result.diagnoses["one"]
    assert found.right_overlap == 100
    assert found.left_overlap < 50
    assert found.tied_sentences == 100
    assert found.saturated_distances == saturated
    assert found.collapsed
    assert result.to_json()["diagnostics"]["one"]["collapsed"] is True
    assert result.systems["one"] == result.systems["right"]


@pytest.mark.parametrize("flavour", ["paper", "released"])
def test_a_random_model_has_not_collapsed(tmp_path: Path, flavour: str) -> None:
    loaded = treebank(tmp_path)
    golds = golds_of(loaded)
    model = parser(4, flavour, scale=3.0)
    found = evaluate_parsers(loaded, {"one": model}, ALL).diagnoses["one"]
    trees, scores = trees_of(model, golds), np.concatenate(model.scores([gold.words for gold in golds]))
    assert not found.collapsed
    inner = [(tree, [span for span in tree.spans() if span[1] - span[0] < len(tree)]) for tree in trees]
    shared = sum(end == len(tree) for tree, spans in inner for _, end in spans)
    assert found.right_overlap == pytest.approx(100 * shared / sum(len(spans) for _, spans in inner))
    assert found.mean_depth == pytest.approx(sum(tree.depth() for tree in trees) / len(trees))
    sigmoid = [1 / (1 + math.exp(-score)) for score in scores.tolist()]
    flat = [s <= 0 for s in scores.tolist()] if flavour == "paper" else [not 0.01 <= s <= 0.99 for s in sigmoid]
    assert found.saturated_distances == pytest.approx(100 * sum(flat) / len(flat))
    assert 0 < found.saturated_distances < 100


def test_signs_of_a_collapse() -> None:
    def diagnosis(left_overlap: float = 20, right_overlap: float = 60, tied_sentences: float = 0) -> Diagnosis:
        return Diagnosis(left_overlap, right_overlap, 3.0, tied_sentences, 100.0)

    assert not diagnosis().collapsed, "saturated distances can still tell places apart before their activation"
    assert diagnosis(left_overlap=95).collapsed
    assert diagnosis(right_overlap=95).collapsed
    assert not diagnosis(left_overlap=94.9, right_overlap=94.9, tied_sentences=50).collapsed
    assert diagnosis(tied_sentences=51).collapsed


def test_left_branching_is_a_collapse() -> None:
    sentences = [tuple("abcdef"[:size]) for size in (1, 2, 3, 6)]
    scores = [np.arange(float(len(words))) for words in sentences]
    found = diagnose([left(words) for words in sentences], scores, parser(), "unbiased")
    assert (found.left_overlap, found.tied_sentences) == (100, 0)
    assert found.right_overlap == 0
    assert found.mean_depth == (1 + 1 + 2 + 5) / 4
    assert found.collapsed


def test_sentences_without_a_choice_say_nothing() -> None:
    """Two words have one tree, whatever their distances."""
    sentences = [("a", "b")] * 9 + [tuple("abcd")]
    trees = [right(words) for words in sentences[:-1]] + [Tree.from_brackets("((a b) (c d))")]
    for last, tied in (([0.0, 1.0, 3.0, 2.0], 0), ([0.0, 1.0, 1.0, 1.0], 100)):
        scores = [np.zeros(2)] * 9 + [np.array(last)]
        for builder in ("paper", "unbiased"):
            assert has_ties(last, builder) == bool(tied)
            found = diagnose(trees, scores, parser(), builder)
            assert found.tied_sentences == tied
            assert (found.left_overlap, found.right_overlap) == (50, 50)
    short = diagnose(trees[:3], [np.zeros(2)] * 3, parser(), "paper")
    assert (short.left_overlap, short.right_overlap, short.tied_sentences, short.collapsed) == (0, 0, 0, False)


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
