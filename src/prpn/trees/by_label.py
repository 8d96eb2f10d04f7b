"""Which kinds of constituents a system finds: recall by gold label.

Whole sentences and single words are left out. With Penn tags, constituents of just a determiner and a noun, `the
bench`, are counted once more as `DT+NN`: they are the least that a parser of English should find.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from prpn.trees.cleaning import Sentence
from prpn.trees.penn_tags import category
from prpn.trees.tree import Tree

PAIR = ("DT", "NN")
Labelled = tuple[tuple[int, int], str]
"""A span and its label."""


def inner_constituents(sentence: Sentence) -> list[Labelled]:
    """List span and label of each distinct constituent that is longer than a word and shorter than its sentence."""
    tree, tags = sentence.tree, [category(tag or "") for tag in sentence.tags]
    found = [
        ((start, end), category(label))
        for start, end, label in tree.constituents
        if label and 1 < end - start < len(tree)
    ]
    pairs = [(span, "+".join(PAIR)) for span, _ in found if tuple(tags[slice(*span)]) == PAIR]
    return list(dict.fromkeys(found + pairs))  # in order, so that labels of equal counts are listed alike each time


def recall_by_label(phrases: Sequence[Sequence[Labelled]], draws: Sequence[Sequence[Tree]]) -> dict[str, float]:
    """The share of the gold constituents of each label, in percent, that trees have, over all draws of them."""
    gold: Counter[str] = Counter()
    matched: Counter[str] = Counter()
    for trees in draws:
        for inner, predicted in zip(phrases, trees, strict=True):
            spans = set(predicted.spans())
            for span, label in inner:
                gold[label] += 1
                matched[label] += span in spans
    return {label: 100 * matched[label] / count for label, count in gold.most_common()}
