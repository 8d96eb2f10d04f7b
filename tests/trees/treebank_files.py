"""Small treebanks for tests: sentences, drawn trees, and shorthands to write and read files of them."""

from pathlib import Path

import pytest
from hypothesis import strategies as st

from prpn.errors import InputError
from prpn.trees import Tree
from prpn.trees.brackets import Constituent
from prpn.trees.treebank import PlacedTree, read_treebank
from tests.trees.test_tree import WORDS

MASC = Path(__file__).parents[2] / "src" / "prpn" / "corpora" / "masc" / "masc.trees"
DOGS = "(S (NP (NNS Dogs)) (VP (VBP bark)) (. .))"
CATS = "(S (NP (NNS Cats)) (VP (VBP sleep) (ADVP (RB soundly))))"
MICE = "(NP (NP (NNS Mice)) (CC and) (NP (NNS men)))"
WORDS = WORDS.filter(lambda word: "\0" not in word)
LABELS = st.sampled_from(["S", "NP-SBJ", "-LRB-", "no_et_þgf", "a", ".", "``", "\u00a0=2", "日"])
Part = tuple[str | None, "str | list[Part]"]


def tree_of(part: Part) -> Tree:
    """(label, word) or (label, [part, …]) as a tree."""
    words: list[str] = []
    constituents: list[Constituent] = []

    def visit(label: str | None, inside: str | list[Part]) -> None:
        index = len(constituents)
        constituents.append(Constituent(len(words), 0, label))
        if isinstance(inside, str):
            words.append(inside)
        else:
            for child in inside:
                visit(*child)
        constituents[index] = constituents[index]._replace(end=len(words))

    visit(*part)
    return Tree(tuple(words), tuple(constituents))


def labelled_parts(
    labels: st.SearchStrategy[str] = LABELS,
    tags: st.SearchStrategy[str] = LABELS,
    words: st.SearchStrategy[str] = WORDS,
    top: st.SearchStrategy[str | None] | None = None,
) -> st.SearchStrategy[Part]:
    """Trees in the labelled form, each word alone with its tag; `top` is the label around everything."""
    leaves = st.tuples(tags, words)
    inner = st.recursive(leaves, lambda part: st.tuples(labels, st.lists(part, min_size=1, max_size=3)), max_leaves=8)
    return inner if top is None else st.tuples(top, st.lists(inner, min_size=1, max_size=3))


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(path: Path, labelled: bool | None = None) -> list[str]:
    return [placed.tree.brackets() for placed in read_treebank([path], labelled=labelled)]


def read_one(path: Path) -> Tree:
    (placed,) = read_treebank([path])
    return placed.tree


def read_skipping(path: Path, labelled: bool | None = None) -> tuple[list[PlacedTree], list[InputError]]:
    broken: list[InputError] = []
    return list(read_treebank([path], broken.append, labelled)), broken


def assert_answer_or_error(path: Path, labelled: bool | None) -> tuple[list[PlacedTree], list[str]]:
    """Trees and errors, after it was made sure that an answer without skipping is the same."""
    try:
        found, errors = read_skipping(path, labelled)
        broken = [str(error) for error in errors]
    except InputError as error:
        assert "no tree in it" in str(error)  # noqa: PT017
        found, broken = [], [str(error)]
        errors = []
    if broken:
        with pytest.raises(InputError) as raised:
            list(read_treebank([path], labelled=labelled))
        assert errors == [] or str(raised.value) == broken[0]
    else:
        assert list(read_treebank([path], labelled=labelled)) == found
    return found, broken
