"""A text as one array of token ids, encoded once and kept in the cache.

    text ── lines ── tokens ── `</s>` after each line ── ids ──> <key>.ids.npy, <key>.lengths.npy, <key>.json

The key is a hash of everything the ids depend on (the decompressed content, the vocabulary, the text settings), and
the JSON file has digests of both arrays and of itself, so a cached corpus is either the right one or made anew. Text
and arrays are streamed: memory does not grow with the text.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prpn.errors import InputError
from prpn.text.atomic import replacing
from prpn.text.cache import (
    ArrayWriter,
    DamagedError,
    digest_of,
    make_way,
    read_array,
    read_file,
    rereadable,
    writable,
)
from prpn.text.files import Observer, place_of, read_blocks, read_pieces
from prpn.text.lines import closed_lines, token_lengths
from prpn.text.tokenizer import Tokenizer
from prpn.text.vocabulary import Vocabulary

Progress = Callable[[int], object]
"""Is told how many more bytes of (decompressed) text have been read."""

_FORMAT = 3
"""To be raised whenever the same text and settings give other files."""
_TOKENS_AT_ONCE = 1 << 16
_LONGEST = np.iinfo(np.uint16).max
"""A longer word counts as this long in a part of the corpus; the whole is always exact."""


@dataclass(frozen=True)
class TokenCounts:
    """How often each token occurs, line ends included, and the SHA-256 of the text."""

    counts: Counter[str]
    checksum: str


@dataclass(frozen=True)
class Corpus:
    """An encoded text. `lengths` gives each token's characters; none in a character model, where each has one."""

    ids: NDArray[np.int32]
    lengths: NDArray[np.uint16] | None
    sentences: int
    unknown: int
    """Tokens that became `<unk>` or a class of it, those written so in the text included."""
    characters: int
    checksum: str
    """SHA-256 of the decompressed files, one after the other."""

    def split(self, held_out: float, vocabulary: Vocabulary) -> tuple[Corpus, Corpus]:
        """All but about the last `held_out` of the tokens, and those; cut at a line end where there are line ends."""
        cut = self._line_end_near(round(len(self.ids) * (1 - held_out)), vocabulary.end)
        ids, lengths = self.ids[cut:], None if self.lengths is None else self.lengths[cut:]
        second = Corpus(
            ids=ids,
            lengths=lengths,
            sentences=int((ids == vocabulary.end).sum()) + int(ids[-1] != vocabulary.end),
            unknown=int(np.isin(ids, vocabulary.unknown_ids).sum()),
            characters=len(ids) if lengths is None else int(lengths.sum(dtype=np.int64)),
            checksum=self.checksum,
        )
        first = replace(
            self,
            ids=self.ids[:cut],
            lengths=None if self.lengths is None else self.lengths[:cut],
            sentences=self.sentences - second.sentences + int(self.ids[cut - 1] != vocabulary.end),
            unknown=self.unknown - second.unknown,
            characters=self.characters - second.characters,
        )
        return first, second

    def _line_end_near(self, wanted: int, end: int) -> int:
        """The position after the line end nearest to `wanted`; without line ends `wanted` itself.

        The corpus may be larger than memory, so the search widens step by step from the place it is most likely at.
        """
        last, reach = len(self.ids) - 1, _TOKENS_AT_ONCE
        wanted = min(max(wanted, 1), last)
        while last > 0:
            low, high = max(0, wanted - reach), min(last, wanted + reach)
            ends = np.flatnonzero(self.ids[low:high] == end) + low + 1
            if len(ends):
                return int(ends[np.abs(ends - wanted).argmin()])
            if (low, high) == (0, last):
                break
            reach *= 4
        if last <= 0 or self.ids[last] == end:  # nothing to cut, or one line only
            remedy = "give more text or a validation file of its own"
            raise InputError("the text", "too short to hold a part out for validation", remedy)
        return wanted


def count_tokens(paths: Sequence[str | Path], tokenizer: Tokenizer, progress: Progress | None = None) -> TokenCounts:
    """Count the tokens of these files. What can be read only once should come through `rereadable` first."""
    counts: Counter[str] = Counter()
    content = hashlib.sha256()
    observe = _hashing(content, progress)
    for tokens in closed_lines((read_pieces(path, observe=observe) for path in paths), tokenizer):
        counts.update(tokens)
    return TokenCounts(counts, content.hexdigest())


def encode(
    paths: Sequence[str | Path],
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    cache: Path,
    progress: Progress | None = None,
) -> Corpus:
    """Give the ids of these files, from the cache if it has them."""
    with rereadable(paths, cache) as files:
        checksum, key = _key(files, tokenizer, vocabulary)
        if corpus := _load(cache, key, len(vocabulary)):
            return corpus
        place, content = ", ".join(map(place_of, paths)), hashlib.sha256()
        observe = _hashing(content, progress)
        batches = _batched(closed_lines((read_pieces(path, observe=observe) for path in files), tokenizer))
        first = next(batches, None)
        if first is None:
            raise InputError(place, "no token in it", "give a text with one sentence a line")

        def whole() -> Iterator[list[str]]:
            yield from chain([first], batches)
            if content.hexdigest() != checksum:
                raise InputError(place, "changed while it was read", "run again once nothing writes to it")

        with writable(cache):
            _write(whole(), tokenizer, vocabulary, cache / key, checksum)
    if corpus := _load(cache, key, len(vocabulary)):
        return corpus
    raise InputError(str(cache), "the cache changed while it was used", "run again, or set PRPN_CACHE")


def _hashing(content: hashlib._Hash, progress: Progress | None) -> Observer:
    def observe(block: bytes) -> None:
        content.update(block)
        if progress is not None:
            progress(len(block))

    return observe


def _key(files: Sequence[str | Path], tokenizer: Tokenizer, vocabulary: Vocabulary) -> tuple[str, str]:
    content, sizes = hashlib.sha256(), []
    for path in files:
        size = 0
        for block in read_blocks(path):
            content.update(block)
            size += len(block)
        sizes.append(size)
    settings = asdict(tokenizer.config)
    relevant = {name: settings[name] for name in ("tokenizer", "lowercase", "digits", "line_ends", "blank_lines")}
    checksum = content.hexdigest()
    parts = [_FORMAT, checksum, sizes, vocabulary.fingerprint, relevant, tokenizer.tokenized]
    return checksum, hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _write(
    batches: Iterable[list[str]], tokenizer: Tokenizer, vocabulary: Vocabulary, stem: Path, checksum: str
) -> None:
    numbers = Counter(sentences=0, unknown=0, characters=0)
    last, files = vocabulary.end, _files(stem)
    for path in files:
        make_way(path)
    with ExitStack() as written:
        # Left in reverse order: the JSON file gets its name last, and only with it a corpus counts as cached.
        summary, ids_file, lengths_file = (written.enter_context(replacing(path)) for path in files)
        ids_writer, lengths_writer = ArrayWriter(ids_file, np.int32), ArrayWriter(lengths_file, np.uint16)
        for tokens in batches:
            ids = np.array(vocabulary.encode(tokens), dtype=np.int32)
            ids_writer.append(ids)
            numbers["sentences"] += int((ids == vocabulary.end).sum())
            numbers["unknown"] += int(np.isin(ids, vocabulary.unknown_ids).sum())
            lengths = token_lengths(tokens, tokenizer.by_character)
            numbers["characters"] += int(lengths.sum())
            if not tokenizer.by_character:
                lengths_writer.append(lengths.clip(max=_LONGEST))
            last = int(ids[-1])
        numbers["sentences"] += last != vocabulary.end
        ids_written, lengths_written = ids_writer.finish(), lengths_writer.finish()
        values = {
            **numbers,
            "checksum": checksum,
            "ids": ids_written,
            "lengths": None if tokenizer.by_character else lengths_written,
        }
        summary.write((json.dumps({"digest": _digest(values), **values}, indent=2) + "\n").encode())


def _batched(lines: Iterator[list[str]]) -> Iterator[list[str]]:
    """Lines put together to lists long enough for numpy to be worth its call."""
    waiting: list[list[str]] = []
    size = 0
    for tokens in lines:
        waiting.append(tokens)
        size += len(tokens)
        if size >= _TOKENS_AT_ONCE:
            yield list(chain.from_iterable(waiting))
            waiting, size = [], 0
    if size:
        yield list(chain.from_iterable(waiting))


def _load(cache: Path, key: str, vocabulary_size: int) -> Corpus | None:
    """Find a cached corpus; none if there is none or its files are damaged."""
    files = _files(cache / key)
    if not os.path.lexists(files[0]):
        return None
    try:
        try:
            values: dict[str, Any] = json.loads(read_file(files[0]))
            if values.pop("digest") != _digest(values):
                raise DamagedError(f"{files[0].name}: other bytes than were written")
            ids, lengths = values.pop("ids"), values.pop("lengths")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DamagedError(f"{files[0].name}: not what was written") from None
        return Corpus(
            ids=read_array(files[1], ids, 0, vocabulary_size - 1),
            lengths=read_array(files[2], lengths, 0, _LONGEST) if lengths else None,
            **values,
        )
    except (DamagedError, OSError) as error:
        logging.getLogger("prpn").warning("%s: the cached text is damaged and made anew (%s)", cache, error)
        return None


def _files(stem: Path) -> tuple[Path, Path, Path]:
    """What is known of a corpus, its ids, its lengths."""
    return stem.with_suffix(".json"), stem.with_suffix(".ids.npy"), stem.with_suffix(".lengths.npy")


def _digest(values: dict[str, Any]) -> str:
    return digest_of(json.dumps(values, sort_keys=True).encode()).hexdigest()
