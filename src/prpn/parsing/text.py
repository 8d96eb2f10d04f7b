"""Text in, trees as text out, block by block, with nothing in between that is not needed to write them.

    lines ──> words and their ids ──> scores ──> constituents ──> lines

The native core does all of it but the splitting of chunks it has not met. Numpy and Python do the same where it is not
in use, and for models of characters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from prpn.config import Builder
from prpn.errors import ConfigError, InputError
from prpn.kernels.parsing import FORMATS, Format, TextWithTrees
from prpn.parsing.folded import native_in_use
from prpn.parsing.parser import Parser
from prpn.parsing.words import Sentence
from prpn.text.files import LineError, place_of, read_line_blocks
from prpn.trees.from_distances import require_builder
from prpn.trees.lines import as_json

Written = Iterable[bytes | memoryview]
Writer = Callable[[bytes], Written]
"""Takes some lines of text and gives as many lines, which are good until it is used again."""


SHOWN_ERRORS = 10
"""Lines that are not text are named one by one up to here, then counted."""


@dataclass
class FileCounts:
    """How many lines a text had, how many of them are not text, and what is wrong with the first of these."""

    lines: int = 0
    bad: int = 0
    errors: list[InputError] = field(default_factory=list)


def parse_into(
    write: Callable[[Written], object],
    parser: Parser,
    path: str,
    form: Format,
    builder: Builder | None = None,
    *,
    tokenized: bool = False,
    ids: bool = False,
    strict: bool = False,
    progress: Callable[[int], object] = lambda _: None,
    told: Callable[[InputError], object] = lambda _: None,
) -> FileCounts:
    """Parse a text and hand on its trees, in order, in bounded memory.

    The first lines that are not text are `told`; if `strict`, the first of them ends the job.
    """
    counts = FileCounts()
    for lines, trees, error in parse_text(parser, path, form, builder, tokenized=tokenized, ids=ids):
        if error is not None:
            if strict:
                raise error
            counts.bad += 1
            if counts.bad <= SHOWN_ERRORS:
                counts.errors.append(error)
                told(error)
        write(trees)
        counts.lines += lines
        progress(lines)
    return counts


def parse_text(
    parser: Parser,
    path: str,
    form: Format,
    builder: Builder | None = None,
    *,
    tokenized: bool = False,
    ids: bool = False,
) -> Iterator[tuple[int, Written, InputError | None]]:
    """(number of lines, the trees in their places, the error if it is a line that is not text), in order."""
    write = writer(parser, form, builder or parser.builder, tokenized)
    if ids:
        write = _with_ids(write, form, place_of(path))
    for block in read_line_blocks(path):
        if isinstance(block, bytes):
            yield block.count(b"\n"), write(block), None
        else:
            yield 1, [f"{_empty(block, form, ids)}\n".encode()], block


def _empty(error: LineError, form: Format, ids: bool) -> str:
    """What stands in the place of a line that is not text."""
    own = {"id": error.legible.partition("\t")[0]} if ids else {}
    if form == "jsonl":
        return as_json([], "", [], [], [], error=str(error), **own)
    return "\t".join([*own.values(), ""])


def writer(parser: Parser, form: Format, builder: Builder, tokenized: bool) -> Writer:
    """The fastest writer that can be used."""
    if form not in FORMATS:
        raise ConfigError(f"no format is called '{form}': choose {', '.join(FORMATS)}")
    require_builder(builder)
    native = native_in_use() and not parser.tokenizer.by_character
    return (_native_writer if native else _writer)(parser, form, builder, tokenized)


def _with_ids(write: Writer, form: Format, place: str) -> Writer:
    """Lines begin with an id and a tab, and so do their trees; an object has it as `id`."""

    def written(block: bytes) -> Written:
        lines = [line.partition(b"\t") for line in block.removesuffix(b"\n").split(b"\n")]
        if without := next((line for line, tab, _ in lines if not tab), None):
            shown = without.decode()[:40]
            raise InputError(place, f"the line {shown!r} has no tab", "with --ids a line is an id, a tab, a sentence")
        text = b"".join(b"%b\n" % sentence for _, _, sentence in lines)
        trees = b"".join(map(bytes, write(text))).split(b"\n")
        for (own, _, _), tree in zip(lines, trees, strict=False):
            if form == "jsonl":
                yield b'{"id": %b, %b\n' % (json.dumps(own.decode(), ensure_ascii=False).encode(), tree[1:])
            else:
                yield b"%b\t%b\n" % (own, tree)

    return written


def native_text(parser: Parser, form: Format | None, tokenized: bool) -> TextWithTrees:
    """What the core needs to read a text for this parser, and to write its trees in a form."""
    tokenizer, vocabulary = parser.tokenizer_for(tokenized), parser.vocabulary
    return TextWithTrees(
        form,
        tokenizer.pieces_of_chunk,
        lambda words: vocabulary.encode(map(tokenizer.normalize, words)),
        {word: index for index, word in enumerate(vocabulary.tokens) if word.isascii() and word.isalpha()},
        tokenizer.exceptions,
        lowercase=tokenizer.config.lowercase,
        unknown=-1 if vocabulary.has_classes else vocabulary.unknown,
        workers=parser.threads,
    )


def _native_writer(parser: Parser, form: Format, builder: Builder, tokenized: bool) -> Writer:
    text = native_text(parser, form, tokenized)

    def write(block: bytes) -> Written:
        scores = parser.network.scores(*text.read(block), parser.threads)
        if not np.isfinite(scores).all():
            parser.parse_block(block.decode().split("\n"), builder, tokenized=tokenized)  # says at which word
        distances = parser.activated(scores.astype(np.float64)) if form == "jsonl" else None
        return text.write(parser.in_units(scores, builder), distances, builder)

    return write


def _writer(parser: Parser, form: Format, builder: Builder, tokenized: bool) -> Writer:
    def write(block: bytes) -> Written:
        lines = as_lines(parser, block.decode().split("\n")[:-1], form, builder, tokenized)
        return ["".join(f"{line}\n" for line in lines).encode()]

    return write


def as_lines(
    parser: Parser, sentences: Sequence[Sentence], form: Format, builder: Builder, tokenized: bool
) -> list[str]:
    """Trees in a form, a line each."""
    trees, scores = parser.parse_block(sentences, builder, tokenized=tokenized)
    if form == "jsonl":
        offsets = [span for sentence in sentences for span in parser.offsets(sentence, tokenized)]
        return trees.json(parser.activated(scores.astype(np.float64)), offsets)
    return {"brackets": trees.brackets, "labelled": trees.labelled, "spans": trees.spans_as_text}[form]()
