"""The scoring protocols by their definitions, by recursion over trees.

A gold tree is a Node of labelled parts, a predicted one nested lists of words as in `trees`; a leaf is (tag, word).
A bracket is (first word, behind the last word); those over fewer than two words never count. With n words:

    klein        set of brackets, (0, n) added                                   counts over the corpus
    released     set of brackets, (0, n) taken out                               mean over sentences
    kim          wrapper off; bottom-up list, last one dropped, then a set       mean over sentences of 2+ words
    kim-corpus   as kim                                                          counts over the corpus
    evalb        wrapper off; multiset of brackets                               counts over the corpus

    precision = hits / predicted    recall = hits / gold    F1 = 2 · precision · recall / (precision + recall)

No gold brackets: recall 1, and precision 1 without predicted ones, else 0. Gold brackets, none predicted: precision 0.
Precision and recall 0: F1 0. A wrapper is a label-less, TOP, ROOT or S1 node with a single part after cleaning.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.reference.trees import Nested

Leaf = tuple[str, str]
Bracket = tuple[int, int]


@dataclass
class Node:
    label: str
    children: list[Tree]


Tree = Node | Leaf
Keep = Callable[[str, str], bool]

PROTOCOLS = ["klein", "released", "kim", "kim-corpus", "evalb"]
MEANS = ["released", "kim"]
WRAPPERS = ["", "TOP", "ROOT", "S1"]
WORD_TAGS = """
CC CD DT EX FW IN JJ JJR JJS LS MD NN NNS NNP NNPS PDT POS PRP PRP$ RB RBR RBS RP SYM TO UH
VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB
"""


def read(text: str) -> Tree:
    (tree,) = read_all(text)
    return tree


def read_all(text: str) -> Iterator[Tree]:
    tokens = re.findall(r"[()]|[^()\s]+", text)[::-1]  # the next one is the last
    while tokens:
        yield read_part(tokens)


def read_part(tokens: list[str]) -> Tree:
    assert tokens.pop() == "("
    label = "" if tokens[-1] in "()" else tokens.pop()
    if tokens[-1] not in "()":
        leaf = label, tokens.pop()
        assert tokens.pop() == ")"
        return leaf
    children = []
    while tokens[-1] == "(":
        children.append(read_part(tokens))
    assert tokens.pop() == ")"
    return Node(label, children)


def keep_penn(tag: str) -> bool:
    return re.split("[-=]", tag)[0] in WORD_TAGS.split()


def keep_unicode(word: str, tag: str) -> bool:
    empty = tag == "-NONE-" or re.fullmatch(r"\*([^*]+\*)?([-=]\d+)?", word)  # *  *-1  *T*-1  *pro*
    return not empty and any(unicodedata.category(letter)[0] not in "PS" for letter in word)


def clean(tree: Tree, keep: Keep) -> Tree | None:
    """What is left of a tree by keep(word, tag); None when no word is."""
    if isinstance(tree, tuple):
        tag, word = tree
        return tree if keep(word, tag) else None
    children = [left for child in tree.children if (left := clean(child, keep)) is not None]
    return Node(tree.label, children) if children else None


def sentences(text: str, keep: Keep) -> list[Tree]:
    """The cleaned trees of a file in which a word is left."""
    return [left for tree in read_all(text) if (left := clean(tree, keep)) is not None]


def penn(text: str) -> list[Tree]:
    return sentences(text, lambda word, tag: keep_penn(tag))


def parts(tree: Tree | Nested) -> Sequence[Tree | Nested]:
    if isinstance(tree, Node):
        return tree.children
    return tree if isinstance(tree, list) else []


def words(tree: Tree | Nested) -> list[str]:
    if isinstance(tree, str):
        return [tree]
    if isinstance(tree, tuple):
        return [tree[1]]
    return [word for part in parts(tree) for word in words(part)]


def size(tree: Tree | Nested) -> int:
    return sum(map(size, parts(tree))) if isinstance(tree, (Node, list)) else 1


def unwrap(tree: Tree | Nested) -> Tree | Nested:
    if isinstance(tree, Node) and tree.label in WRAPPERS and len(tree.children) == 1:
        return unwrap(tree.children[0])
    return tree


def bottom_up(tree: Tree | Nested, start: int = 0) -> list[Bracket]:
    """All brackets with repeats, each after those inside it."""
    found = []
    end = start
    for part in parts(tree):
        found += bottom_up(part, end)
        end += size(part)
    return [*found, (start, end)] if end - start >= 2 else found


def brackets(tree: Tree | Nested, protocol: str) -> Counter[Bracket]:
    """The brackets, gold or predicted, that a protocol counts, and how often."""
    whole = {(0, size(tree))} if size(tree) >= 2 else set()
    if protocol == "klein":
        return Counter(set(bottom_up(tree)) | whole)
    if protocol == "released":
        return Counter(set(bottom_up(tree)) - whole)
    if protocol in ("kim", "kim-corpus"):
        return Counter(set(bottom_up(unwrap(tree))[:-1]))
    if protocol == "evalb":
        return Counter(bottom_up(unwrap(tree)))
    raise ValueError(protocol)


def ratios(hits: int, gold: int, predicted: int) -> tuple[float, float, float]:
    recall = hits / gold if gold else 1.0
    precision = hits / predicted if predicted else float(gold == 0)
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both else 0.0


def score(golds: Sequence[Tree], predictions: Sequence[Nested], protocol: str) -> tuple[float, float, float]:
    """Precision, recall and F1 in percent."""
    shortest = 2 if protocol in ("kim", "kim-corpus") else 1
    counts = []
    for gold, predicted in zip(golds, predictions, strict=True):
        assert size(gold) == size(predicted)
        if size(gold) >= shortest:
            g, p = brackets(gold, protocol), brackets(predicted, protocol)
            counts.append(((g & p).total(), g.total(), p.total()))
    if not counts:
        raise ValueError("no sentence counts")
    if protocol in MEANS:
        each = [ratios(*count) for count in counts]
    else:
        hits, gold_total, predicted_total = (sum(column) for column in zip(*counts, strict=True))
        each = [ratios(hits, gold_total, predicted_total)]
    precision, recall, f1 = (100 * sum(column) / len(each) for column in zip(*each, strict=True))
    return precision, recall, f1


def left(sentence: list[str]) -> Nested:
    return [left(sentence[:-1]), sentence[-1]] if sentence[1:] else sentence[0]


def right(sentence: list[str]) -> Nested:
    return [sentence[0], right(sentence[1:])] if sentence[1:] else sentence[0]


def balanced(sentence: list[str]) -> Nested:
    if len(sentence) == 1:
        return sentence[0]
    half = len(sentence) // 2
    return [balanced(sentence[:half]), balanced(sentence[half:])]


def upper(gold: Tree) -> Nested:
    """A binary tree with every bracket of the gold one: parts beyond two nest to the right."""
    if isinstance(gold, tuple):
        return gold[1]
    first, *rest = gold.children
    return [upper(first), upper(Node("", rest))] if rest else upper(first)
