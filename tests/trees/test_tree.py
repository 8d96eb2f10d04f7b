import pickle
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prpn.errors import InputError
from prpn.trees import Tree
from prpn.trees.brackets import Constituent

WORDS = st.text(st.characters(exclude_characters=" \t\n\r\f\v", exclude_categories=["Cs"]), min_size=1, max_size=4)
WORDS = WORDS.filter(lambda word: "-LRB-" not in word and "-RRB-" not in word)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Any tree: nodes with one or many children, anywhere."""
    shape = draw(st.recursive(WORDS, lambda part: st.lists(part, min_size=1, max_size=4), max_leaves=12))
    words: list[str] = []
    constituents: list[Constituent] = []

    def visit(part: str | list) -> None:
        if isinstance(part, str):
            words.append(part)
            return
        index = len(constituents)
        constituents.append(Constituent(len(words), 0))
        for child in part:
            visit(child)
        constituents[index] = constituents[index]._replace(end=len(words))

    visit(shape if isinstance(shape, list) else [shape])
    return Tree(tuple(words), tuple(constituents))


def deep_brackets(depth: int, side: str) -> str:
    words = [f"w{i}" for i in range(2 * depth)]
    pairs = [f"({a} {b})" for a, b in zip(words[::2], words[1::2], strict=True)]
    if side == "right":
        return "".join(f"({pair} " for pair in pairs[:-1]) + pairs[-1] + ")" * (depth - 1)
    return "(" * (depth - 1) + pairs[0] + "".join(f" {pair})" for pair in pairs[1:])


@given(trees())
def test_brackets_and_back(tree: Tree) -> None:
    again = Tree.from_brackets(tree.brackets())
    assert again == tree
    assert hash(again) == hash(tree)
    assert "\n" not in tree.brackets()
    assert pickle.loads(pickle.dumps(tree)) == tree


@given(trees())
def test_spans_are_the_constituents_of_two_or_more_words(tree: Tree) -> None:
    spans = tree.spans()
    assert spans == sorted(spans, key=lambda span: (span[0], -span[1]))
    assert all(end - start > 1 for start, end in spans)
    assert len(tree) == 1 or spans[0] == (0, len(tree))


def test_examples() -> None:
    tree = Tree.from_brackets(" ( the\t(old man) )\n")
    assert tree.words == ("the", "old", "man")
    assert tree.brackets() == "(the (old man))"
    assert tree.spans() == [(0, 3), (1, 3)]
    assert len(tree) == 3
    assert repr(tree) == "<Tree (the (old man))>"
    assert tree != Tree.from_brackets("((the old) man)")
    assert Tree.from_brackets("(word)").spans() == []
    assert Tree.from_brackets("((a b))").spans() == [(0, 2), (0, 2)]


def test_no_words() -> None:
    assert Tree((), ()).brackets() == "()"
    assert Tree.from_brackets("()") == Tree((), ())
    assert Tree((), ()).pretty() == ""


def test_brackets_and_spaces_inside_words() -> None:
    tree = Tree(("f(x)", " "), (Constituent(0, 2),))
    assert tree.brackets() == "(f-LRB-x-RRB- ▁)"
    assert Tree.from_brackets(tree.brackets()).words == ("f(x)", "▁")


def test_labels_are_written_where_there_are_any() -> None:
    tree = Tree(("old", "man"), (Constituent(0, 2, "NP"), Constituent(0, 1, "JJ"), Constituent(1, 2, "NN")))
    assert tree.brackets() == "(NP (JJ old) (NN man))"
    assert tree.spans() == [(0, 2)]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", ": no tree here"),
        ("word", ", column 1: 'word' stands before the tree"),
        (") (", ", column 1: ')' stands before the tree"),
        ("(a b) c", ", column 7: 'c' stands after the tree"),
        ("(a b))", ", column 6: ')' stands after the tree"),
        ("()()", ", column 3: '(' stands after the tree"),
        ("(a (b", ", column 4: the bracket opened here is never closed"),
        ("(a ())", ", column 4: the bracket opened here has no words"),
        ("(())", ", column 2: the bracket opened here has no words"),
    ],
)
def test_broken_brackets(text: str, cause: str) -> None:
    with pytest.raises(InputError) as error:
        Tree.from_brackets(text, "trees.txt:12")
    assert str(error.value).startswith(f"trees.txt:12{cause}")


@pytest.mark.parametrize(
    "constituents",
    [[], [(0, 2)], [(1, 3)], [(0, 3), (2, 4)], [(0, 3), (0, 2), (1, 3)], [(0, 3), (1, 3), (0, 1)], [(0, 3), (1, 1)]],
)
def test_constituents_must_be_nested_and_in_pre_order(constituents: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="constituent"):
        Tree(("a", "b", "c"), tuple(Constituent(*span) for span in constituents))


def test_empty_words_are_refused() -> None:
    with pytest.raises(InputError, match="word 1 is empty"):
        Tree(("a", ""), (Constituent(0, 2),))


@pytest.mark.parametrize("side", ["left", "right"])
def test_depth_is_no_limit(side: str) -> None:
    text = deep_brackets(50_000, side)
    begun = time.process_time()
    tree = Tree.from_brackets(text)
    assert len(tree) == 100_000
    assert tree.brackets() == text
    assert len(tree.spans()) == 99_999
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert len({tree, Tree.from_brackets(text)}) == 1
    assert tree.pretty().count("\n") == 99_999
    assert time.process_time() - begun < 10
