import sys
import time

import nltk
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prpn.errors import InputError, PrpnError
from prpn.trees import Tree
from prpn.trees.brackets import Constituent
from tests.trees.labelled import labelled_trees
from tests.trees.test_tree import deep_brackets

LABELS = st.text(min_size=1, max_size=3)


@given(labelled_trees(LABELS))
def test_there_and_back(tree: Tree) -> None:
    converted = tree.to_nltk()
    assert Tree.from_nltk(converted) == tree
    assert tuple(converted.leaves()) == tree.words
    assert [node.label() for node in converted.subtrees()] == [part.label or "" for part in tree.constituents]
    assert Tree.from_nltk(converted).to_nltk() == converted


def test_example() -> None:
    tree = Tree(("old", "man"), (Constituent(0, 2), Constituent(0, 2, "NP"), Constituent(1, 2, "NN")))
    converted = nltk.Tree("", [nltk.Tree("NP", ["old", nltk.Tree("NN", ["man"])])])
    assert tree.to_nltk() == converted
    assert Tree.from_nltk(converted) == tree
    assert Tree.from_nltk(nltk.ParentedTree.convert(converted)) == tree
    assert Tree.from_nltk(nltk.ImmutableTree.convert(converted)) == tree


def test_what_nltk_reads() -> None:
    text = "(S (NP (PRP We)) (VP (VBP like) (NP (NNS trees))))"
    assert Tree.from_nltk(nltk.Tree.fromstring(text)).brackets() == text


def test_no_words() -> None:
    assert Tree((), ()).to_nltk() == nltk.Tree("", [])
    assert Tree.from_nltk(nltk.Tree("S", [])) == Tree((), ())


def test_labels_that_are_not_strings() -> None:
    assert Tree.from_nltk(nltk.Tree(nltk.Nonterminal("NP"), ["man"])).brackets() == "(NP man)"
    assert Tree.from_nltk(nltk.Tree(None, ["man"])).brackets() == "(man)"


@pytest.mark.parametrize("leaf", [("man", "NN"), 1, None])
def test_leaves_that_are_not_words(leaf: object) -> None:
    with pytest.raises(InputError, match=r"^nltk tree: the leaf .* is not a string; "):
        Tree.from_nltk(nltk.Tree("S", ["old", leaf]))


def test_nodes_without_words() -> None:
    with pytest.raises(InputError, match=r"^nltk tree: a node labelled 'NP' has no words; remove it$"):
        Tree.from_nltk(nltk.Tree("S", [nltk.Tree("NP", []), "sat"]))
    with pytest.raises(InputError, match="word 1 is empty"):
        Tree.from_nltk(nltk.Tree("S", ["old", ""]))


@pytest.mark.parametrize("side", ["left", "right"])
def test_depth_is_no_limit(side: str) -> None:
    tree = Tree.from_brackets(deep_brackets(50_000, side))
    begun = time.process_time()
    assert Tree.from_nltk(tree.to_nltk()) == tree
    assert time.process_time() - begun < 10


def test_without_nltk(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree.from_brackets("(old man)")
    converted = tree.to_nltk()
    monkeypatch.setitem(sys.modules, "nltk", None)
    with pytest.raises(PrpnError, match=r"nltk is not installed; pip install 'prpn\[nltk\]'"):
        tree.to_nltk()
    with pytest.raises(PrpnError, match=r"nltk is not installed; pip install 'prpn\[nltk\]'"):
        Tree.from_nltk(converted)
