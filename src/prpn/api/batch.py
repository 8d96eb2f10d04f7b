"""Parsing in batches for engines: columns in, arrays out, without an object for each tree.

    sentences ──> words, ids ──> scores ──> spans        all of a batch at once, in the core where there is one

    sentence i has the words   word_ends[i−1] … word_ends[i] − 1,   word w stands at offsets[w] of its sentence
    and the constituents       span_ends[i−1] … span_ends[i] − 1,   each the words starts … stops − 1 of that sentence

A parser for batches can be pickled, so it can be sent to workers; any number of threads may use one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prpn.api.model import Model
from prpn.config import Builder
from prpn.errors import ConfigError
from prpn.kernels.parsing import Format, TextWithTrees
from prpn.parsing.folded import native_in_use
from prpn.parsing.parser import Parser
from prpn.parsing.pipe import as_text, checked_all, lines_of
from prpn.parsing.text import native_text
from prpn.parsing.words import Sentence


@dataclass(frozen=True)
class Spans:
    """The trees of a batch."""

    word_ends: NDArray[np.int64]
    """Where each sentence ends among the words of all."""
    offsets: NDArray[np.int32]
    """Where each word begins and ends in its sentence, in characters (words, 2)."""
    distances: NDArray[np.float32]
    """The syntactic distance before each word."""
    span_ends: NDArray[np.int64]
    """Where each sentence ends among the constituents of all."""
    starts: NDArray[np.int32]
    """The first word of each constituent of two words or more, counted in its sentence, parents first."""
    stops: NDArray[np.int32]
    """The word after its last."""

    def __len__(self) -> int:
        return len(self.word_ends)


class BatchParser:
    """A model's parser for batches of sentences."""

    def __init__(
        self,
        model: str | Path | Model | Parser | None = None,
        *,
        builder: Builder | None = None,
        tokenized: bool = False,
        threads: int | None = None,
    ) -> None:
        """Read a parser.

        Args:
            model: A model folder, an embedded model's name, or a model; without it the embedded English model.
            builder: How distances become a tree; the model's own unless one is named.
            tokenized: Sentences are split at spaces only.
            threads: How many threads a batch may use; 1 where an engine has a worker for each core. As many as there
                are processors unless given.

        Raises:
            InputError: It is no model folder, or has no parsing network.
            ConfigError: The model is one of characters, or there would be no thread.

        """
        if threads is not None and threads < 1:
            raise ConfigError(f"threads = {threads}: give 1 or more")
        given = model.parser if isinstance(model, Model) else model
        own = given if isinstance(given, Parser) else Parser.load(given)
        self.parser = own.with_threads(threads)
        self.builder, self.tokenized, self.threads = builder or own.builder, tokenized, threads
        self.parser.require_words()
        self._texts: deque[TextWithTrees] = deque()

    def spans(self, sentences: Iterable[Sentence]) -> Spans:
        """The trees of some sentences as arrays.

        Args:
            sentences: Strings, or lists of words; a column of either.

        Raises:
            InputError: With its number, the first item that is no sentence.

        """
        given = list(checked_all(sentences))
        if native_in_use() and all(type(each) is str for each in given):
            text = self._texts.pop() if self._texts else native_text(self.parser, None, self.tokenized)
            its_ids, its_ends = text.read(as_text([str(each) for each in given]))
            ids, ends, offsets = its_ids.copy(), its_ends.copy(), text.offsets()
            self._texts.append(text)  # and not where something went wrong
        else:
            read = self.parser.reader(self.tokenized).read(given)
            ids, ends = read.ids, read.ends
            found = [span for each in given for span in self.parser.offsets(each, self.tokenized)]
            offsets = np.array(found, dtype=np.int32).reshape(-1, 2)
        scores = self.parser.network.scores(ids, ends, self.threads)
        if not np.isfinite(scores).all():
            self.parser.parse_block(given, self.builder, tokenized=self.tokenized)  # says at which word
        starts, stops, span_ends = self.parser.spans(scores, ends, self.builder)
        distances = self.parser.activated(scores).astype(np.float32)
        return Spans(ends, offsets, distances, span_ends, starts, stops)

    def lines(self, sentences: Iterable[Sentence], form: Format = "brackets") -> list[str]:
        """The trees of some sentences as strings; of an empty sentence the empty string.

        Args:
            sentences: Strings, or lists of words; a column of either.
            form: `brackets`, `labelled`, `spans` or `jsonl`.

        """
        return list(lines_of(self.parser, checked_all(sentences), form, self.builder, self.tokenized))

    def __reduce__(self) -> tuple[object, ...]:
        """What workers get: the parser, and nothing that is at work."""
        return _made, (self.parser, self.builder, self.tokenized, self.threads)


def _made(parser: Parser, builder: Builder, tokenized: bool, threads: int | None) -> BatchParser:
    return BatchParser(parser, builder=builder, tokenized=tokenized, threads=threads)
