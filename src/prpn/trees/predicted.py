"""Predicted trees from files: beside the gold trees they are scored against, or line by line to be averaged.

A file of predictions has a tree for each sentence of the treebank: for all of them, for those that have a word, or for
those that are scored. A predicted tree may be over the words that are scored, or over all that are spoken, punctuation
too; then what is not scored is taken out of it, as it was out of the gold tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from prpn.errors import InputError
from prpn.text.files import place_of, read_lines, refuse_standard_input_twice
from prpn.trees.brackets import TOKEN
from prpn.trees.cleaning import Sentence, Treebank, restrict, without_tags
from prpn.trees.tree import Tree
from prpn.trees.treebank import SAMPLE, PlacedTree, look_labelled, read_line, read_treebank


@dataclass(frozen=True)
class Predictions:
    """A tree for each sentence that is scored, and how many are over other words than the gold tree."""

    trees: list[Tree]
    reworded: int


def read_predictions(path: str | Path, treebank: Treebank) -> Predictions:
    """Read the predicted trees of a treebank's sentences."""
    found = list(read_treebank([path]))
    counted = treebank.counted()
    spoken = [sentence for sentence in treebank.sentences if len(sentence.tree)]
    for sentences in (list(treebank.sentences), spoken, counted):
        if len(sentences) == len(found):
            break
    else:
        sizes = f"{len(treebank.sentences)} trees, {len(spoken)} with words, {len(counted)} of them scored"
        raise InputError(place_of(path), f"{len(found)} trees, but {treebank.name} has {sizes}", "one for each")
    scored = set(map(id, counted))
    pairs = [pair for pair in zip(sentences, found, strict=True) if id(pair[0]) in scored]
    trees = [_aligned(*pair) for pair in pairs]
    return Predictions(trees, sum(tree.words != s.tree.words for tree, (s, _) in zip(trees, pairs, strict=True)))


def _aligned(sentence: Sentence, predicted: PlacedTree) -> Tree:
    tree, size = without_tags(predicted.tree), len(sentence.tree)
    if len(tree) == size:
        return tree
    if len(tree) != len(sentence.kept):
        spoken = f", {len(sentence.kept)} with what is not scored" if len(sentence.kept) != size else ""
        cause = f"{len(tree)} words, but the gold tree at {sentence.place} has {size}{spoken}"
        raise InputError(predicted.place, cause, "predict the output of `prpn words`")
    return distinct(restrict(tree, sentence.kept))


def distinct(tree: Tree) -> Tree:
    """Keep one of the constituents over the same words: taking words away made them alike."""
    return Tree(tree.words, tuple({c[:2]: c for c in reversed(tree.constituents)}.values())[::-1])


def read_side_by_side(paths: Sequence[str | Path]) -> Iterator[tuple[Tree, ...]]:
    """The trees of the same sentences in several files, one a line; a blank line is a tree without words."""
    refuse_standard_input_twice(paths)
    for placed in zip(*map(_tree_lines, paths), strict=False):
        ended = [path for path, line in zip(paths, placed, strict=True) if line is None]
        if len(ended) == len(paths):
            return
        if ended:
            last = next(line for line in placed if line is not None)
            raise InputError(place_of(ended[0]), f"ends before {last.place}", "give files of the same sentences")
        lines = [line for line in placed if line is not None]
        for line in lines[1:]:
            if line.tree.words != lines[0].tree.words:
                raise InputError(line.place, f"other words than {lines[0].place}", "give files of the same sentences")
        yield tuple(line.tree for line in lines)


def _tree_lines(path: str | Path) -> Iterator[PlacedTree | None]:
    """Each line as a tree, then None for ever."""
    lines = ((f"{place_of(path)}:{number}", line) for number, line in read_lines(path))
    sample = list(islice(lines, SAMPLE))
    tokens = [TOKEN.findall(line) for _, line in sample if isinstance(line, str)]
    labelled = look_labelled([found for found in tokens if found])
    for place, line in chain(sample, lines):
        if isinstance(line, InputError):
            raise line
        tree = read_line(line, labelled, place) if line.strip() else Tree((), ())
        yield PlacedTree(place, without_tags(tree))
    while True:
        yield None
