"""Reading treebanks: files and folders of bracketed trees, whatever their layout.

    lines ── gathered while a bracket is open ── cut where brackets balance ── labelled or not? ──> Tree

A tree may take many lines, a line may hold many trees. Labels are anything without brackets and spaces; the outermost
bracket may have none, as in the Penn Treebank. A folder stands for all files in it, by name, that begin with a bracket;
what is hidden, by a dot, is left out.

`(the (old man))` could be a tree of three words, or one word `man` with the labels `the` and `old`. So whether trees
are labelled is decided once, from the first `SAMPLE` trees. A tree that follows the labelled form

    tree  =  ( [LABEL] tree … )  |  ( TAG word )          LABEL may be missing at the top only

and has two words or more speaks for labels, one that does not follow it against them, and the majority wins. Against
them speaks also `((the old) (man sat))`, a label-less bracket around words alone. Without any evidence trees are
labelled if all their tags are Penn tags and no label has small letters. `labelled` overrides the decision.

Where a bracket is never closed, the rest of the file is inside it. Then each bracket in the first column of a line is
taken to begin a tree: the tree before it is the broken one. The same holds before the file has ended if a whole tree
stands there that begins like an earlier one, `(S` or `( (`, and the trees so far, three or more, had no bracket in the
first column inside: a file that is not indented at all is read as it stands.
Where a bracket is closed that was never opened, or text stands outside of brackets, all trees of the line are broken,
for one cannot know where the damage is; and if the tree before took several lines and this line is indented though the
file is not, that tree too: it may have been closed too early. A line that is not text breaks its tree; its brackets
count all the same. Every character is looked at a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path

from prpn.errors import InputError
from prpn.text.files import (
    STANDARD_INPUT,
    LineError,
    place_of,
    read_blocks,
    read_lines,
    refuse_standard_input_twice,
)
from prpn.trees.brackets import TOKEN, assemble
from prpn.trees.penn_tags import PENN_TAGS, category
from prpn.trees.tree import Tree

SAMPLE = 200
"""Trees that decide how all are read."""
ESTABLISHED = 3
"""Trees without a bracket in the first column inside, after which one there is suspicious."""
_NOTICE = re.compile(r"\s*\*x\*")  # the legal notice that opens some files of the Penn Treebank
_BEGINS_WITH_BRACKET = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s|\*x\*[^\n]*\n)*+\(")

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
    refuse_standard_input_twice(paths)
    texts = chain.from_iterable(map(_texts_of, files_of(paths)))
    sample: list[_Text | InputError] = []
    sampled: list[Sequence[str]] = []
    for text in texts:
        sample.append(text)
        if isinstance(text, _Text):
            sampled.append(text.tokens)
        if len(sampled) == SAMPLE:
            break
    labelled = look_labelled(sampled) if labelled is None else labelled
    found = False
    for text in chain(sample, texts):
        tree = text if isinstance(text, InputError) else text.tree(labelled)
        if isinstance(tree, InputError):
            on_broken(tree)
        else:
            found = True
            yield tree
    if not found:
        raise InputError(", ".join(map(place_of, paths)), "no tree in it", "a tree looks like (S (NP (NN dogs)) …)")


def read_line(line: str, labelled: bool, place: str) -> Tree:
    """Read a line that is one tree."""
    return Tree(*assemble(TOKEN.findall(line), labelled, lambda i: place, place))


def files_of(paths: Sequence[str | Path]) -> list[str | Path]:
    """Name the files that paths stand for: a folder for those in it, at any depth, that begin with a bracket."""
    files: list[str | Path] = []
    for path in paths:
        if str(path) == STANDARD_INPUT or not _is_folder(path):
            files.append(path)
            continue
        inside = sorted(file for file in Path(path).rglob("*") if file.is_file() and not _is_hidden(file, path))
        begins = [file for file in inside if _begins_with_bracket(file)]
        if not begins:
            raise InputError(str(path), "no file in this folder begins with a bracket", "name a folder with trees")
        files += begins
    return files


def look_labelled(trees: Iterable[Sequence[str]]) -> bool:
    """Decide whether trees, given as tokens, are labelled."""
    evidence, all_penn = 0, True
    for tokens in trees:
        try:
            tree = Tree(*assemble(tokens, True, str, ""))
        except InputError:
            evidence -= _is_tree(tokens)
            continue
        labels = [label for _, _, label in tree.constituents]
        if None in labels[1:] or (labels[:1] == [None] and 1 < len(tree) == _parts_below_top(tree)):
            evidence -= 1
        elif len(tree) > 1:
            evidence += 1
        all_penn &= all(tag is not None and category(tag) in PENN_TAGS for tag in tree.tags())
        all_penn &= all(label is None or label == label.upper() for label in labels)
    return evidence > 0 or (evidence == 0 and all_penn)


@dataclass
class _Text:
    """Tokens of a file, each with its line."""

    file: str
    tokens: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def place_of(self, position: int) -> str:
        return f"{self.file}:{self.lines[position]}"

    def tree(self, labelled: bool) -> PlacedTree | InputError:
        place = self.place_of(0)
        try:
            return PlacedTree(place, Tree(*assemble(self.tokens, labelled, self.place_of, place)))
        except InputError as error:
            return error

    def cut(self, positions: Sequence[int]) -> Iterator[_Text]:
        for start, end in pairwise([0, *positions, len(self.tokens)]):
            yield _Text(self.file, self.tokens[start:end], self.lines[start:end])

    def balanced(self) -> Iterator[_Text | InputError]:
        """One tree after the other; or the error, if there is more than trees."""
        depth, ends = 0, []
        for i, token in enumerate(self.tokens):
            if depth == 0 and token != "(":
                what = "a bracket is closed that was never opened" if token == ")" else f"'{token}' is in no tree"
                return iter([InputError(self.place_of(i), what, "write each tree in brackets")])
            if token == "(":
                depth += 1
            elif token == ")":
                depth -= 1
                if depth == 0:
                    ends.append(i + 1)
        return self.cut(ends if depth else ends[:-1])  # the caller finds what is wrong with the last

    def has_words(self) -> bool:
        """Tell whether there is more than brackets that open, with or without a label."""
        return any("(" not in pair for pair in pairwise(self.tokens))


def _texts_of(path: str | Path) -> Iterator[_Text | InputError]:
    """Give what should be trees, and what cannot be any, in order."""
    illegible: dict[int, LineError] = {}
    for text in _gathered(path, illegible):
        errors = [illegible[line] for line in text.lines if line in illegible] if illegible else []
        yield from errors[:1] or text.balanced()


def _gathered(path: str | Path, illegible: dict[int, LineError]) -> Iterator[_Text]:
    """Gather the lines of a tree, or of several that share lines; those that are not text are noted."""
    file, indented = place_of(path), False
    tops, flush_left = set[str](), False  # how trees began; whether one had a bracket in the first column inside
    text, depth, first_column = _Text(file), 0, list[int]()
    may_be_broken, trees = False, 0
    depth_around, trees_before = 0, 0  # of what seems to be a tree that begins inside of a broken one
    for number, line in read_lines(path):
        if isinstance(line, LineError):
            illegible[number] = line
            line = line.legible
        tokens = TOKEN.findall(line)
        if not tokens or (depth == 0 and _NOTICE.match(line)):
            continue
        if not text.tokens:
            indented = line[0].isspace()
        elif depth == 0 and (indented or not line[0].isspace() or text.lines[0] == text.lines[-1]):
            yield text
            text = _Text(file)
        elif depth > 0 and line[0] == "(":
            if not first_column:
                may_be_broken = text.has_words() and not flush_left and trees >= ESTABLISHED
            first_column.append(len(text.tokens))
            if may_be_broken and (_top(tokens) in tops or _top(tokens) == _top(text.tokens)):
                depth_around, trees_before = depth, len(first_column)
        for token in tokens:
            if token == "(":
                depth += 1
            elif token == ")" and depth > 0:
                depth -= 1
                if depth < depth_around:
                    depth_around = 0
        text.tokens += tokens
        text.lines += [number] * len(tokens)
        if depth == depth_around:
            if depth > 0:
                *broken, text = text.cut(first_column[:trees_before])
                yield from broken
            elif first_column:
                flush_left = True
            if text.tokens[0] == "(":
                trees += 1
                tops.add(_top(text.tokens))
            depth, depth_around, first_column = 0, 0, []
    if text.tokens:
        yield from text.cut(first_column)


def _top(tokens: Sequence[str]) -> str:
    """Name the label of the outermost bracket, or nothing."""
    return next((token for token in tokens[1:2] if token not in "()"), "")


def _parts_below_top(tree: Tree) -> int:
    parts = end = 0
    for part in tree.constituents[1:]:
        if part.start >= end:
            parts, end = parts + 1, part.end
    return parts


def _is_tree(tokens: Sequence[str]) -> bool:
    try:
        assemble(tokens, False, str, "")
    except InputError:
        return False
    return True


def _is_folder(path: str | Path) -> bool:
    try:
        return Path(path).is_dir()
    except OSError:  # a name that no file can have; opening it says so
        return False


def _is_hidden(file: Path, folder: str | Path) -> bool:
    return any(name.startswith(".") for name in file.relative_to(folder).parts)


def _begins_with_bracket(file: Path) -> bool:
    try:
        return _BEGINS_WITH_BRACKET.match(next(read_blocks(file), b"")) is not None
    except InputError:
        return False
