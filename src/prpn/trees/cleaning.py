"""From a tree as annotated to the words and brackets that are scored: every step has a name.

    empty elements   traces and the like, which nobody says: tag -NONE-, or a word such as *T*-1, *-2 or *pro*. They
                     are no words; by the rule `penn` the tag alone decides that.
    words            `penn`      leaves with one of the 36 Penn word tags: no punctuation, no $ and #
                     `unicode`   leaves that are not made of punctuation and symbols (Unicode P… and S…) only
                     `all`       every leaf that is not an empty element
                     `auto`      `penn` if most leaves of the first trees have Penn tags, else `unicode`
    case, digits     as a model's text settings write them; a model does that itself when it parses
    maximum words    sentences with more are left out, and always those without any

A constituent that loses all its words vanishes; one that keeps some stays, however few. So does the tree's label-less,
TOP or ROOT wrapper: protocols differ in what they make of it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, compress, islice
from pathlib import Path
from typing import Literal

from prpn.config import TextConfig
from prpn.errors import ConfigError, InputError
from prpn.text.files import place_of
from prpn.text.penn import BRACKETS
from prpn.text.tokenizer import Tokenizer
from prpn.trees.brackets import Constituent
from prpn.trees.penn_tags import EMPTY_TAG, PENN_TAGS, PENN_WORD_TAGS, category
from prpn.trees.tree import Tree
from prpn.trees.treebank import SAMPLE, PlacedTree, raise_error, read_treebank

_EMPTY_WORD = re.compile(r"\*[^*]+\*([-=]\d+)?|\*[-=]\d+")


@dataclass(frozen=True)
class Cleaning:
    """What is scored of a treebank."""

    keep: Literal["auto", "penn", "unicode", "all"] = "auto"
    lowercase: bool = False
    digits: Literal["keep", "N", "number"] = "keep"
    maximum: int | None = None
    """Most words a sentence may have; None: any number."""

    def __post_init__(self) -> None:
        if self.maximum is not None and self.maximum < 1:
            raise ConfigError(f"--max-words {self.maximum}: give 1 or more")


@dataclass(frozen=True)
class Sentence:
    """A gold tree over the words that count, their tags, and which leaves they were among all that are spoken."""

    place: str
    tree: Tree
    tags: tuple[str | None, ...]
    kept: tuple[bool, ...]

    @property
    def line(self) -> str:
        """Its words as text that splits into them again at white space, also one with a no-break space inside."""
        return " ".join(re.sub(r"\s", "▁", word) for word in self.tree.words)


@dataclass(frozen=True)
class Treebank:
    """The sentences of a treebank, cleaned; also those left without a word, which keep their places."""

    name: str
    sentences: tuple[Sentence, ...]
    cleaning: Cleaning
    broken: list[InputError] = field(default_factory=list)

    def counted(self) -> list[Sentence]:
        """Those that are scored: with a word, and not with too many."""
        most = self.cleaning.maximum or float("inf")
        return [sentence for sentence in self.sentences if 1 <= len(sentence.tree) <= most]


def load_treebank(
    paths: Sequence[str | Path],
    cleaning: Cleaning | None = None,
    *,
    skip_broken: bool = False,
    progress: Callable[[int], object] | None = None,
) -> Treebank:
    """Read and clean files and folders of trees."""
    cleaning = cleaning or Cleaning()
    broken: list[InputError] = []
    normalize = Tokenizer(TextConfig(lowercase=cleaning.lowercase, digits=cleaning.digits)).normalize
    trees = read_treebank(paths, broken.append if skip_broken else raise_error)
    sample = list(islice(trees, SAMPLE))
    keep = rule_for([placed.tree for placed in sample]) if cleaning.keep == "auto" else cleaning.keep
    sentences = []
    for placed in chain(sample, trees):
        sentences.append(clean(placed, keep, normalize))
        if progress is not None:
            progress(1)
    return Treebank(", ".join(map(place_of, paths)), tuple(sentences), replace(cleaning, keep=keep), broken)


def rule_for(trees: Sequence[Tree]) -> Literal["penn", "unicode"]:
    """Choose by the tags which leaves are words."""
    tags = [tag for tree in trees for tag in tree.tags()]
    penn = sum(tag is not None and category(tag) in PENN_TAGS for tag in tags)
    return "penn" if 2 * penn > len(tags) else "unicode"


def clean(placed: PlacedTree, words: Literal["penn", "unicode", "all"], normalize: Callable[[str], str]) -> Sentence:
    """Cut a tree down to the words that count; their tags leave the tree, all other labels stay."""
    tree, tags = placed.tree, placed.tree.tags()
    leaves = list(zip(tree.words, tags, strict=True))
    counts = [_counts(word, tag, words) for word, tag in leaves]
    spoken = [a or not is_empty(word, tag) for a, (word, tag) in zip(counts, leaves, strict=True)]
    kept = restrict(without_tags(tree), counts)
    normal = Tree(tuple(map(normalize, kept.words)), kept.constituents)
    return Sentence(placed.place, normal, tuple(compress(tags, counts)), tuple(compress(counts, spoken)))


def is_empty(word: str, tag: str | None) -> bool:
    """Tell an empty element: it has no sound."""
    return tag == EMPTY_TAG or _EMPTY_WORD.fullmatch(word) is not None


def is_word(word: str) -> bool:
    """Tell whether anything but punctuation and symbols is in it; brackets may be written as in the Penn Treebank."""
    return word not in BRACKETS.values() and any(unicodedata.category(letter)[0] not in "PS" for letter in word)


def restrict(tree: Tree, keep: Sequence[bool]) -> Tree:
    """Take words away, and the constituents that lose all theirs."""
    rank = [0, *accumulate(keep)]  # how many words are kept before each
    constituents = [Constituent(rank[start], rank[end], label) for start, end, label in tree.constituents]
    return Tree(tuple(compress(tree.words, keep)), tuple(c for c in constituents if c.start < c.end))


def without_tags(tree: Tree) -> Tree:
    """Take the innermost bracket off each word that has one to itself; a tree of one word keeps its last."""
    innermost = {c.start: place for place, c in enumerate(tree.constituents) if c.end - c.start == 1}
    tags = set(innermost.values())
    constituents = tuple(c for place, c in enumerate(tree.constituents) if place not in tags)
    return Tree(tree.words, constituents or tree.constituents)


def _counts(word: str, tag: str | None, words: Literal["penn", "unicode", "all"]) -> bool:
    if words == "penn":
        return tag is not None and category(tag) in PENN_WORD_TAGS
    return not is_empty(word, tag) and (words == "all" or is_word(word))
