"""Trees of ours as trees of nltk, and back: the same words, the same nodes.

    Constituent(start, end, label)    ↔    nltk.Tree(label, [children])
    Constituent(start, end)           ↔    nltk.Tree('', [children])
    words[i]                          ↔    'word'
    Tree((), ())                      ↔    nltk.Tree('', [])

Neither direction recurses. Much of what nltk does with its trees does, so printing or comparing a very deep one there
may fail.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from prpn.errors import InputError, PrpnError
from prpn.trees.brackets import Constituent
from prpn.trees.families import families
from prpn.trees.tree import Tree

if TYPE_CHECKING:
    import nltk


def to_nltk(tree: Tree) -> nltk.Tree:
    """Give the tree as an `nltk.Tree`."""
    new = _nltk().Tree
    nodes: list[Any] = [*tree.words, *(new(label or "", []) for *_, label in tree.constituents)]
    for node, children in families(len(tree), [(start, end) for start, end, _ in tree.constituents]):
        nodes[node].extend(nodes[child] for child in children)
    return nodes[len(tree)] if nodes else new("", [])


def from_nltk(nltk_tree: nltk.Tree) -> Tree:
    """Read an `nltk.Tree` whose leaves are words; labels that are not strings, such as nonterminals, become strings."""
    known = (str, _nltk().Tree)
    words: list[str] = []
    constituents: list[Constituent] = []
    todo: list[Any] = [nltk_tree]  # the next one last; a number is a constituent that ends here
    while todo:
        part = todo.pop()
        if isinstance(part, int):
            constituents[part] = constituents[part]._replace(end=len(words))
        elif isinstance(part, str):
            words.append(part)
        else:
            label = part.label()
            todo.append(len(constituents))
            constituents.append(Constituent(len(words), len(words), None if label is None else str(label) or None))
            if not part and len(constituents) > 1:
                raise InputError("nltk tree", f"a node labelled '{label}' has no words", "remove it")
            for child in reversed(part):
                if not isinstance(child, known):
                    raise InputError("nltk tree", f"the leaf {child!r} is not a string", "leaves must be words")
                todo.append(child)
    return Tree(tuple(words), tuple(constituents) if words else ())


def _nltk() -> ModuleType:
    try:
        import nltk
    except ImportError:
        raise PrpnError("trees of nltk: nltk is not installed; pip install 'prpn[nltk]'") from None
    return nltk
