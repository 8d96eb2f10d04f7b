"""Trees with labels on some of their constituents."""

from hypothesis import strategies as st

from prpn.trees import Tree
from tests.trees.test_tree import trees


@st.composite
def labelled_trees(draw: st.DrawFn, labels: st.SearchStrategy[str]) -> Tree:
    tree = draw(trees())
    return Tree(tree.words, tuple(part._replace(label=draw(st.none() | labels)) for part in tree.constituents))
