"""A tree over the words of a sentence.

    tree = (words, constituents)        constituents in pre-order, each a half-open span [start, end)

            ┌─────┴─────┐
            │        ┌──┴──┐            words         the  old  man
           the      old   man           constituents  [0, 3)  [1, 3)

Any two constituents are nested or disjoint, the first covers the sentence, and pre-order tells a parent from its only
child. Two flat tuples make comparing, hashing, pickling and freeing a tree a plain loop, at any depth: a sentence of a
hundred thousand words that branches to one side only is a tree like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prpn.errors import InputError
from prpn.trees.brackets import Constituent, bracketed, read_brackets
from prpn.trees.families import depths_of

if TYPE_CHECKING:
    import nltk


DRAWN_WORDS, SHOWN_CHARACTERS = 200, 400
"""What a notebook draws, and what a prompt shows, at most."""


def shortened(text: str) -> str:
    """A text as a prompt shows it."""
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


@dataclass(frozen=True, slots=True, repr=False)
class Tree:
    """Words and the constituents over them; a node may have any number of children, and a label."""

    words: tuple[str, ...]
    constituents: tuple[Constituent, ...]

    def __post_init__(self) -> None:
        if "" in self.words:
            raise InputError("tree", f"word {self.words.index('')} is empty", "leave it out")
        if bool(self.words) != bool(self.constituents) or (
            self.words and self.constituents[0][:2] != (0, len(self.words))
        ):
            raise ValueError("the first constituent of a tree covers all its words")
        enclosing: list[int] = []  # where the open constituents end, innermost last
        previous = 0
        for start, end, _ in self.constituents:
            while enclosing and enclosing[-1] <= start:
                enclosing.pop()
            if not previous <= start < end or (enclosing and end > enclosing[-1]):
                raise ValueError(f"constituent [{start}, {end}) crosses another one or is out of pre-order")
            enclosing.append(end)
            previous = start

    @staticmethod
    def of_sound_parts(words: tuple[str, ...], constituents: tuple[Constituent, ...]) -> Tree:
        """A tree of parts that are known to fit together: what is checked elsewhere is not checked again.

        Args:
            words: The words of the sentence.
            constituents: Start, end and label of each constituent, in pre-order.

        """
        tree = object.__new__(Tree)
        object.__setattr__(tree, "words", words)
        object.__setattr__(tree, "constituents", constituents)
        return tree

    @classmethod
    def from_brackets(cls, text: str, place: str = "brackets") -> Tree:
        """Read what `brackets` writes, without labels.

        Args:
            text: One tree, such as `(the (old man))`.
            place: What errors begin with, such as `trees.txt:12`.

        Raises:
            InputError: The brackets do not match, or stand around nothing.

        """
        return cls(*read_brackets(text, place))

    @classmethod
    def from_nltk(cls, nltk_tree: nltk.Tree) -> Tree:
        """Read a tree of nltk; needs the extra `prpn[nltk]`.

        Args:
            nltk_tree: An `nltk.Tree` with words for leaves; the label '' is read as none.

        """
        from prpn.integrations.nltk import from_nltk

        return from_nltk(nltk_tree)

    def brackets(self) -> str:
        """Write the tree as one line: `(the (old man))`, `(word)`, and `()` where there are no words."""
        return " ".join(bracketed(self.words, self.constituents)) or "()"

    def labelled(self) -> str:
        """Write the tree with a label after each bracket, `(X (W the) (X (W old) (W man)))`, as most readers expect.

        X is a constituent without a label, W a word without a tag.
        """
        tagged = {start for start, end, label in self.constituents if end - start == 1 and label is not None}
        parts = [Constituent(start, end, label or "X") for start, end, label in self.constituents]
        parts += [Constituent(i, i + 1, "W") for i in range(len(self.words)) if i not in tagged]
        parts.sort(key=lambda part: (part.start, -part.end))  # which is stable: what stood outside stays there
        return " ".join(bracketed(self.words, parts)) or "()"

    @property
    def label(self) -> str | None:
        """The label of the outermost bracket, if it has one."""
        return self.constituents[0].label if self.constituents else None

    @property
    def children(self) -> tuple[Tree | str, ...]:
        """What the outermost bracket holds, from left to right: trees, and words that stand there by themselves.

        `(the (old man))` has the children `the` and `(old man)`. To iterate over a tree is to iterate over these.
        """
        found: list[Tree | str] = []
        word, i = 0, 1
        while word < len(self.words):
            if i < len(self.constituents) and self.constituents[i].start == word:
                first, end = i, self.constituents[i].end
                while i < len(self.constituents) and self.constituents[i].start < end:
                    i += 1
                inner = tuple(Constituent(s - word, e - word, label) for s, e, label in self.constituents[first:i])
                found.append(Tree.of_sound_parts(self.words[word:end], inner))
                word = end
            else:
                found.append(self.words[word])
                word += 1
        return tuple(found)

    def spans(self) -> list[tuple[int, int]]:
        """List the half-open spans of all constituents of two or more words, the sentence included, in pre-order."""
        return [(start, end) for start, end, _ in self.constituents if end - start > 1]

    def tags(self) -> list[str | None]:
        """List the label of each word's own bracket, `NN` of `(NN man)`; None where it has none."""
        found: list[str | None] = [None] * len(self.words)
        for start, end, label in self.constituents:
            if end - start == 1:
                found[start] = label  # the innermost comes last
        return found

    def depth(self) -> int:
        """Count the constituents around the word that is in most of them."""
        return max(depths_of((start, end) for start, end, _ in self.constituents), default=0)

    def pretty(self, width: int = 80) -> str:
        """Draw the tree in characters.

        Args:
            width: Columns there are: where the words fit in one row it is drawn above them, else one word a line.

        """
        from prpn.trees.drawing import draw_tree  # only who draws pays for what drawing needs

        return draw_tree(self, width)

    def svg(self) -> str:
        """Draw the tree as a picture: SVG to write to a file or to put into a page."""
        from prpn.trees.svg import svg

        return svg(self)

    def to_nltk(self) -> nltk.Tree:
        """Give the same tree as nltk's, with the label '' where there is none; needs the extra `prpn[nltk]`."""
        from prpn.integrations.nltk import to_nltk

        return to_nltk(self)

    def __len__(self) -> int:
        """Count the words."""
        return len(self.words)

    def __iter__(self) -> Iterator[Tree | str]:
        return iter(self.children)

    def __repr__(self) -> str:
        return f"<Tree {shortened(self.brackets())}>"

    def _repr_svg_(self) -> str | None:
        """How a notebook shows it; one that would fill the page many times over is shown as text."""
        return self.svg() if len(self.words) <= DRAWN_WORDS else None
