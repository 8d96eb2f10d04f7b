"""Reading treebanks: files and folders of bracketed trees, whatever their layout.

    lines ── cut where brackets balance ──> one tree after the other ── labelled or not? ──> Tree

A tree may take many lines, a line may hold many trees. Labels are anything without brackets and spaces; the outermost
bracket may have none, as in the Penn Treebank. A folder stands for all files in it, by name, that begin with a bracket.

`(the (old man))` could be a tree of three words, or one word `man` with the labels `the` and `old`. So whether trees
are labelled is decided once, from the first `SAMPLE` trees. A tree that follows the labelled form

    tree  =  ( [LABEL] tree … )  |  ( TAG word )          LABEL may be missing at the top only

and has two words or more speaks for labels, one that does not follow it against them, and the majority wins. Without
any evidence trees are labelled if all their tags are Penn tags. `labelled` overrides the decision.

Where a bracket is never closed, the rest of the file is inside it. Then a bracket in the first column of a line is
taken to begin a tree: the tree before it is the broken one. Every character is looked at a bounded number of times.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from prpn.errors import InputError
from prpn.text.files import STANDARD_INPUT, place_of, read_lines
from prpn.trees.brackets import TOKEN, assemble
from prpn.trees.penn_tags import PENN_TAGS, category
from prpn.trees.tree import Tree

SAMPLE = 200
"""Trees that decide how all are read."""
_COMMENT = re.compile(r"\*x\*")  # the legal notice that opens some files of the Penn Treebank

OnBroken = Callable[[InputError], object]
"""Is told of a broken tree; it raises the error, or counts it."""


def raise_error(error: InputError) -> None:
    """Stop at the first broken tree."""
    raise error


@dataclass(frozen=True)
class PlacedTree:
    """A tree and where it stands, such as `wsj.mrg:812`."""

    place: str
    tree: Tree


def read_treebank(
    paths: Sequence[str | Path], on_broken: OnBroken = raise_error, labelled: bool | None = None
) -> Iterator[PlacedTree]:
    """Give every tree of the files and folders, in order."""
    texts = chain.from_iterable(_texts_of(path, on_broken) for path in files_of(paths))
    sample = list(islice(texts, SAMPLE))
    if labelled is None:
        labelled = look_labelled(text.tokens for text in sample)
    found = False
    for text in chain(sample, texts):
        try:
            tree = text.tree(labelled)
        except InputError as error:
            on_broken(error)
            continue
        found = True
        yield PlacedTree(text.place, tree)
    if not found:
        raise InputError(", ".join(map(place_of, paths)), "no tree in it", "a tree looks like (S (NP (NN dogs)) …)")


def read_line(line: str, labelled: bool, place: str) -> Tree:
    """Read a line that is one tree."""
    return Tree(*assemble(TOKEN.findall(line), labelled, lambda i: place, place))


def files_of(paths: Sequence[str | Path]) -> list[str | Path]:
    """Name the files that paths stand for: a folder for those in it, at any depth, that begin with a bracket."""
    files: list[str | Path] = []
    for path in paths:
        if str(path) == STANDARD_INPUT or not Path(path).is_dir():
            files.append(path)
            continue
        inside = sorted(Path(folder) / name for folder, _, names in os.walk(path) for name in names if name[0] != ".")
        begins = [file for file in inside if _begins_with_bracket(file)]
        if not begins:
            raise InputError(str(path), "no file in this folder begins with a bracket", "name a folder with trees")
        files += begins
    return files


def look_labelled(trees: Iterable[Sequence[str]]) -> bool:
    """Decide whether trees, given as tokens, are labelled."""
    evidence, all_tags_are_penn = 0, True
    for tokens in trees:
        try:
            tree = Tree(*assemble(tokens, True, str, ""))
        except InputError:
            evidence -= _is_tree(tokens)
            continue
        labels = [label for _, _, label in tree.constituents]
        if None in labels[1:] or (labels[:1] == [None] and (0, len(tree)) != tree.constituents[1][:2]):
            evidence -= 1
        elif len(tree) > 1:
            evidence += 1
        all_tags_are_penn &= all(tag is not None and category(tag) in PENN_TAGS for tag in tree.tags())
    return evidence > 0 or (evidence == 0 and all_tags_are_penn)


@dataclass
class _Text:
    """One tree as tokens, each with its line."""

    file: str
    tokens: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    @property
    def place(self) -> str:
        return f"{self.file}:{self.lines[0]}"

    def tree(self, labelled: bool) -> Tree:
        return Tree(*assemble(self.tokens, labelled, lambda i: f"{self.file}:{self.lines[i]}", self.place))

    def cut(self, positions: Sequence[int]) -> Iterator[_Text]:
        for start, end in zip([0, *positions], [*positions, len(self.tokens)], strict=True):
            yield _Text(self.file, self.tokens[start:end], self.lines[start:end])


def _texts_of(path: str | Path, on_broken: OnBroken) -> Iterator[_Text]:
    """Cut a file where its brackets balance."""
    file = place_of(path)
    text, depth, first_column = _Text(file), 0, list[int]()
    for number, line in read_lines(path):
        if isinstance(line, InputError):
            on_broken(line)
            continue
        if depth == 0 and _COMMENT.match(line):
            continue
        for token in TOKEN.finditer(line):
            if depth == 0 and token[0] != "(":
                what = "a bracket is closed that was never opened" if token[0] == ")" else f"'{token[0]}' is in no tree"
                on_broken(InputError(f"{file}:{number}", what, "write each tree in brackets"))
                break  # one report is enough for a line
            if token[0] == "(":
                if depth > 0 and token.start() == 0:
                    first_column.append(len(text.tokens))
                depth += 1
            elif token[0] == ")":
                depth -= 1
            text.tokens.append(token[0])
            text.lines.append(number)
            if depth == 0:
                yield text
                text, first_column = _Text(file), []
    if depth > 0:  # the caller finds which of the parts are broken, and why
        yield from text.cut(first_column)


def _is_tree(tokens: Sequence[str]) -> bool:
    try:
        assemble(tokens, False, str, "")
    except InputError:
        return False
    return True


def _begins_with_bracket(path: Path) -> bool:
    try:
        for _, line in read_lines(path):
            if isinstance(line, InputError):
                return False
            if line.strip() and not _COMMENT.match(line):
                return line.lstrip().startswith("(")
    except InputError:
        return False
    return False
