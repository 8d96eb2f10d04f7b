"""Whether a text is what a model expects: one sentence a line, in its words, and no markup.

    the first lines of a text ── a few shares ── above what good text has? ──> a finding: cause and remedy

Findings are warnings: nothing depends on them. Each threshold lies far from what was measured on both sides
(docs/log.md; the model is the embedded English one):

    unknown, of the words with a letter        English of seven kinds 0.07 to 0.21  48 other languages 0.61 and more
    in lines of four sentences and more        a sentence or verse a line to 0.36   paragraphs of five 0.84 and more
    lines that the next word would not fit     a sentence or verse a line to 0.17   wrapped 1.00
"""

from __future__ import annotations

import json
import logging
import re
import stat
import sys
from collections.abc import Iterator
from itertools import chain, islice, pairwise
from pathlib import Path

from prpn.errors import InputError
from prpn.text.compression import kind_of
from prpn.text.files import STANDARD_INPUT, Rewritten, place_of, read_blocks
from prpn.text.scripts import UNSPACED
from prpn.text.tokenizer import Tokenizer
from prpn.text.vocabulary import Vocabulary, is_unknown

SAMPLE_BYTES = 1 << 17
"""Of a text, enough to see what it is: about a thousand lines."""
SPLIT_IT = "give one sentence a line, or say --sentences (train, parse, perplexity)"

UNKNOWN = 0.4
"""Share of unknown words from which on a text is not of the model's language."""
_RUNNING = 0.6
_WRAPPED = 0.5
_MARKUP = 0.5
_LONG_CHUNK = 6
"""Characters between spaces, on average, where no script that writes spaces has so many words written in it."""
_ENOUGH_WORDS, _ENOUGH_LINES = 100, 10
_MOST_WORDS = 5000
"""That are looked up, for looking up is what takes time."""
_SEVERAL = 3
"""Sentence ends within a line that are more than a verse has."""
_NARROWEST, _WIDEST, _LENGTHS = 40, 250, 5
"""Columns of wrapped text, and how many lengths its lines have at least."""

_QUOTES = "\"'“”‘’«»()[\\]"
_END = re.compile(rf"[.!?…।॥։؟۔።][{_QUOTES}]*\s*$|[。！？][{_QUOTES}」』）]*\s*$")
_END_WITHIN = re.compile(rf"[.!?…।॥։؟۔።]+[{_QUOTES}]*\s+[{_QUOTES}]*(?=[^\W\d_])|[。！？]+[」』）]*(?=\w)")
_TAG = re.compile(r"</?[A-Za-z][\w:-]*(?:\s[^<>]*)?/?>")


def warn(path: str | Path, tokenizer: Tokenizer, vocabulary: Vocabulary | None = None) -> None:
    """Log what speaks against a text; without a vocabulary nothing is said of its words."""
    warn_of(beginning(path), place_of(path), tokenizer, vocabulary, split=isinstance(path, Rewritten))


def warn_of(text: str, place: str, tokenizer: Tokenizer, vocabulary: Vocabulary | None, *, split: bool = False) -> None:
    """Log what speaks against the first lines of a text."""
    for finding in findings(text[:SAMPLE_BYTES], tokenizer, vocabulary, split=split):
        logging.getLogger("prpn").warning("%s: %s", place, finding)


def beginning(path: str | Path) -> str:
    """The first lines of a text that can be had without taking them from whoever reads it, nor waiting for them."""
    try:
        if str(path) == STANDARD_INPUT:
            block = sys.stdin.buffer.peek() if hasattr(sys.stdin.buffer, "peek") else b""
        else:
            block = next(read_blocks(path), b"") if stat.S_ISREG(Path(path).stat().st_mode) else b""
    except (InputError, OSError, ValueError):  # whoever reads it will say what is wrong
        return ""
    if b"\0" in block or kind_of(block):
        return ""
    lines, end, rest = block[:SAMPLE_BYTES].rpartition(b"\n")
    return (lines if end else rest).decode(errors="ignore")


def findings(
    text: str, tokenizer: Tokenizer, vocabulary: Vocabulary | None = None, *, split: bool = False
) -> Iterator[str]:
    """What speaks against the first lines of a text, each as cause and remedy; `split` if its lines mean nothing."""
    lines = [line for line in text.split("\n") if line.strip()]
    if kind := _markup(lines):
        yield kind
        return
    if vocabulary is not None:
        yield from _unknown(lines, tokenizer, vocabulary)
    if tokenizer.by_character:
        return
    if unspaced := UNSPACED.findall(text):
        letters = sum(map(str.isalpha, text))
        chunks = [chunk for chunk in text.split() if UNSPACED.search(chunk)]
        if len(unspaced) > max(_ENOUGH_WORDS, letters / 2) and sum(map(len, chunks)) > _LONG_CHUNK * len(chunks):
            remedy = "use a model of characters (quick-char), or split it into words and say --tokenized"
            yield f"written without spaces, so words cannot be told; {remedy}"
    if tokenizer.config.line_ends and not split:
        yield from _not_one_sentence_a_line(text, lines)


def _unknown(lines: list[str], tokenizer: Tokenizer, vocabulary: Vocabulary) -> Iterator[str]:
    tokens = islice(chain.from_iterable(map(tokenizer.tokens, lines)), _MOST_WORDS)
    words = [word for word in tokens if any(map(str.isalpha, word))]
    if len(words) < _ENOUGH_WORDS:
        return
    share = sum(is_unknown(vocabulary.tokens[each]) for each in vocabulary.encode(words)) / len(words)
    if share > UNKNOWN:
        what = "characters" if tokenizer.by_character else "words"
        yield f"{share:.0%} of its {what} are unknown to the model; use or train one of this language"


def _not_one_sentence_a_line(text: str, lines: list[str]) -> Iterator[str]:
    several = [line for line in lines if len(_END_WITHIN.findall(line)) >= _SEVERAL]
    if sum(map(len, several)) > _RUNNING * sum(map(len, lines)) and len(several) > 1:
        yield f"several sentences a line; {SPLIT_IT}"
        return
    pairs = [pair for pair in pairwise(text.split("\n")) if all(map(str.strip, pair))]
    lengths = sorted(map(len, lines))
    if len(pairs) < _ENOUGH_LINES or len(set(lengths)) < _LENGTHS:
        return
    width = lengths[int(0.98 * (len(lengths) - 1))]
    full = sum(len(line.rstrip()) + 1 + len(after.split()[0]) > width for line, after in pairs) / len(pairs)
    ended = sum(_END.search(line) is not None for line, _ in pairs) / len(pairs)
    if _NARROWEST <= width <= _WIDEST and full > _WRAPPED > ended:
        yield f"sentences go on from line to line; {SPLIT_IT}"


def _markup(lines: list[str]) -> str:
    def share(holds: list[bool]) -> float:
        return sum(holds) / max(_ENOUGH_LINES, len(lines))

    if share([_TAG.search(_without_tokens(line)) is not None for line in lines]) > _MARKUP:
        return "it looks like HTML or XML; take the markup out"
    if share([line.startswith(("{", "[")) and _is_json(line) for line in lines]) > _MARKUP:
        return "it looks like JSON; give the text alone"
    if share([line.startswith("(") and line.rstrip().endswith(")") and "(" in line[1:] for line in lines]) > _MARKUP:
        return "it looks like trees; `prpn words` gives their words"
    if share([line.count("\t") >= 7 for line in lines]) > _MARKUP:
        return "it looks like a table, such as CoNLL-U; give the text alone"
    return ""


def _without_tokens(line: str) -> str:
    """A line without `<unk>` and other tokens that are written like tags."""
    return re.sub(r"</?(?:unk|s|eos|bos|pad|num|url|user)>", "", line, flags=re.IGNORECASE)


def _is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict | list)
    except ValueError:
        return False
