"""Recall by label against its definition, on trees read by other code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from prpn.trees import Tree
from prpn.trees.evaluation import baseline_systems, evaluate, evaluate_parsers
from tests.reference import scores as reference
from tests.trees.small_treebank import ALL, golds_of, own_golds, parser, treebank, trees_of


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
