"""Any number of sentences from Python, in blocks: in order, in bounded memory, and as fast as their form allows.

sentences ── checked one by one ── blocks ─┬─ words and ids ── scores ── flat arrays ── Tree objects
                                           └─ lines of UTF-8 ── the writer of `parsing.text` ── lines of text
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from prpn.config import Builder
from prpn.errors import InputError
from prpn.kernels.parsing import Format
from prpn.parsing.parser import Parser, in_blocks
from prpn.parsing.text import as_lines, writer
from prpn.parsing.words import Sentence, checked
from prpn.trees.tree import Tree


def checked_all(sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    """The sentences; the first thing that is none ends the job with its number, counted from 0."""
    if isinstance(sentences, str | bytes):
        raise InputError("sentences", "is a single string", "use parse for one sentence, or give a list of them")
    try:
        items = iter(sentences)
    except TypeError:
        raise InputError("sentences", f"is of type {type(sentences).__name__}", "give a list of strings") from None
    return (each if type(each) is str else checked(each, f"sentence {i}") for i, each in enumerate(items))


def trees_of(parser: Parser, sentences: Iterable[Sentence], builder: Builder | None, tokenized: bool) -> Iterator[Tree]:
    """Trees as objects."""
    for block in in_blocks(sentences):
        trees, _ = parser.parse_block(block, builder, tokenized=tokenized)
        yield from trees


def lines_of(
    parser: Parser, sentences: Iterable[Sentence], form: Format, builder: Builder | None, tokenized: bool
) -> Iterator[str]:
    """Trees as lines of text, without their ends."""
    chosen = builder or parser.builder
    write, done = writer(parser, form, chosen, tokenized), 0
    for block in in_blocks(sentences):
        if all(type(sentence) is str for sentence in block) and not parser.tokenizer.by_character:
            text = b"".join(bytes(piece) for piece in write(as_text(cast(list[str], block), done)))
            yield from text.decode().split("\n")[:-1]
        else:
            yield from as_lines(parser, block, form, chosen, tokenized)
        done += len(block)


def as_text(block: list[str], first: int = 0) -> bytes:
    """A line each, the first of them numbered so: a line end within a sentence is white space like any other."""
    text = "\n".join(block)
    if not block:
        return b""
    if text.count("\n") >= len(block):
        text = "\n".join(sentence.replace("\n", " ") for sentence in block)
    try:
        return f"{text}\n".encode()
    except UnicodeEncodeError as error:
        number = first + text.count("\n", 0, error.start)
        raise InputError(f"sentence {number}", "holds half a surrogate pair, which is no text") from None
