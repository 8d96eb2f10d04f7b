"""The parsing network alone, in evaluation mode, without torch: text in, distances and trees out.

`folded` has the mathematics. Trees are built from w · h_t + b, which has no flat parts: where the activation saturates,
it still tells places apart. Builders that lean want them in units of their standard deviation, which is measured on
held-out text when training ends, and kept among the weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from prpn.config import Builder, Recipe, read_saved_recipe
from prpn.errors import ConfigError, InputError
from prpn.kernels import parsing as native
from prpn.models.files import CONFIG, DISTILLED, VOCABULARY, WEIGHTS
from prpn.models.folder import model_folder
from prpn.models.weights import (
    PARTS,
    SCALE,
    Shapes,
    lookahead_in,
    read_arrays,
    require_agreeing_shapes,
    require_agreement,
    write_arrays,
)
from prpn.parsing.folded import Array, Folded, native_in_use
from prpn.parsing.words import Sentence, Sentences, WordReader
from prpn.text.tokenizer import Tokenizer
from prpn.text.vocabulary import Vocabulary, is_unknown
from prpn.trees.from_distances import LEANING, require_builder, spans_of_many
from prpn.trees.lines import Trees
from prpn.trees.tree import Tree

Scores = NDArray[np.float64]
Number = TypeVar("Number", bound="np.floating[Any]")

CHARACTERS_A_WORD = 6
"""Or so, with the space after it."""
BLOCK = 16_384
"""Tokens that are worked on at once: enough that most of them repeat, little enough to stay in some megabytes."""
SATURATED = 0.01
"""A sigmoid this near to 0 or 1 is flat: its distances hardly differ."""


def standard_deviation(scores: Iterable[Scores]) -> float:
    """Of the scores of some sentences, but for those of first words: before these nothing can be split off."""
    inner = [found[1:] for found in scores if len(found) > 1]
    return float(np.concatenate(inner).std()) if inner else 0.0


@dataclass(frozen=True)
class Parsed:
    """A sentence with its tree and the distances before their activation that it was built from."""

    tree: Tree
    scores: Scores


class Parser:
    """The parsing network of a trained model, with its tokenizer and vocabulary."""

    def __init__(
        self, recipe: Recipe, vocabulary: Vocabulary, weights: Mapping[str, Array], place: str = "", lookahead: int = 0
    ) -> None:
        """Put together what `load` reads.

        Args:
            recipe: How text becomes tokens, and what the network is.
            vocabulary: The tokens it knows.
            weights: The network's weights by name; those of other networks are left out.
            place: How messages call the parser.
            lookahead: Words after the present one that the convolution sees.

        Raises:
            InputError: The recipe has no parsing network, or the weights do not fit.

        """
        self.recipe, self.vocabulary, self.place = recipe, vocabulary, place or recipe.name
        self.tokenizer = Tokenizer(recipe.text)
        self.threads: int | None = None
        _require_parsing(recipe, self.place)
        require_agreement(weights, len(vocabulary), lookahead, None, self.place)
        self._weights = {name: array for name, array in weights.items() if name.startswith(PARTS)}
        self.scale = float(weights.get(SCALE, 0.0))
        self.network = Folded(weights, vocabulary.start, lookahead)

    @classmethod
    def load(cls, model: str | Path | None = None) -> Parser:
        """Read what parsing needs of a model: the distilled parsing network, or else the model's own.

        Args:
            model: A model folder, or an embedded model's name; without either the embedded English model.

        Raises:
            InputError: It is no model folder, or has no parsing network.

        """
        folder = model_folder(model)
        distilled = folder / DISTILLED
        path = distilled if distilled.exists() else folder / WEIGHTS
        recipe, vocabulary = read_saved_recipe(folder / CONFIG), Vocabulary.load(folder / VOCABULARY)
        _require_parsing(recipe, str(path))
        lookback, parts = (None, ("",)) if path == distilled else (recipe.model.lookback, PARTS)

        def check(shapes: Shapes, header: Mapping[str, Any]) -> None:
            lookahead = lookahead_in(header, str(path))
            require_agreeing_shapes(shapes, len(vocabulary), lookahead, lookback, str(path), parts)

        weights, header = read_arrays(path, check, parts)
        return cls(recipe, vocabulary, weights, str(path), lookahead_in(header, str(path)))

    @property
    def builder(self) -> Builder:
        """How this model's distances become a tree unless one asks for another way."""
        return self.recipe.model.builder

    def through(self, builder: Builder) -> Parser:
        """The same network with another builder of its own.

        Args:
            builder: How its distances shall become a tree.

        """
        other = copy(self)
        other.recipe = replace(self.recipe, model=replace(self.recipe.model, builder=builder))
        return other

    def with_threads(self, threads: int | None) -> Parser:
        """The same parser with another number of threads.

        Args:
            threads: How many it may use at once; None: as many as there are processors.

        """
        other = copy(self)
        other.threads = threads
        return other

    def require_words(self) -> None:
        """Refuse a model of characters: to it every word of a tree is unknown."""
        if self.tokenizer.by_character:
            raise ConfigError(f"{self.place} is a model of characters: give one of words")

    @cached_property
    def _split_already(self) -> Tokenizer:
        return Tokenizer(self.recipe.text, tokenized=True)

    def tokenizer_for(self, tokenized: bool) -> Tokenizer:
        """The model's tokenizer, or one for text that is split already.

        Args:
            tokenized: Whether text is split at spaces only.

        """
        return self._split_already if tokenized else self.tokenizer

    def words(self, sentence: str | Sequence[str], tokenized: bool = False) -> list[str]:
        """The words of a sentence as they are written.

        Args:
            sentence: A string; a list of words stays as it is.
            tokenized: Whether the string is split at spaces only.

        """
        if not isinstance(sentence, str):
            return list(sentence)
        return self.tokenizer_for(tokenized).words(sentence)

    def reader(self, tokenized: bool = False) -> WordReader:
        """What turns sentences into words and ids; it remembers what it has seen, so there is one.

        Args:
            tokenized: Whether strings are split at spaces only.

        """
        return self._reader_of_words if tokenized else self._reader

    def scores(self, sentences: Iterable[Sentence]) -> list[Scores]:
        """Distances before their activation, one before each word.

        Args:
            sentences: Strings, or lists of words.

        """
        read = self.reader().read(sentences)
        return _cut(self._scored(read), read.ends)

    def scores_of_ids(self, ids: NDArray[np.int32], lengths: Sequence[int]) -> list[Scores]:
        """The same of sentences that are numbers already.

        Args:
            ids: The words of all of them, as the vocabulary numbers them.
            lengths: How many words each sentence has.

        """
        ends = np.cumsum(lengths, dtype=np.int64)
        return _cut(self.network.scores(ids, ends), ends)

    def in_units(self, scores: NDArray[Number], builder: Builder) -> NDArray[Number]:
        """Scores as a builder wants them.

        Args:
            scores: Distances before their activation.
            builder: Those that lean want them in units of their standard deviation.

        Raises:
            InputError: That was not measured, since the model's training has not ended.

        """
        if builder not in LEANING:
            return scores
        if not self.scale:
            remedy = "finish its training with --resume, or build with paper or unbiased"
            raise InputError(self.place, f"{builder} needs the spread of distances, which was not measured", remedy)
        return (scores.astype(np.float32) / np.float32(self.scale)).astype(scores.dtype)

    def activated(self, scores: NDArray[Number]) -> NDArray[Number]:
        """The distances themselves: what the gates compare.

        Args:
            scores: Distances before their activation.

        """
        found = (1 + np.tanh(scores / 2)) / 2 if self.recipe.model.flavour == "released" else np.maximum(scores, 0)
        return found.astype(scores.dtype, copy=False)

    def share_unknown(self, words: Iterable[str]) -> float:
        """Which share of some words the model does not know.

        Args:
            words: As they are written.

        """
        ids = self.vocabulary.encode(map(self.tokenizer.normalize, words))
        return sum(is_unknown(self.vocabulary.tokens[each]) for each in ids) / max(1, len(ids))

    def saturated(self, scores: Scores) -> NDArray[np.bool_]:
        """Where the activation is flat, so that the gates cannot tell distances apart.

        Args:
            scores: Distances before their activation.

        """
        distances = self.activated(scores)
        if self.recipe.model.flavour == "paper":
            return distances == 0
        return (distances < SATURATED) | (distances > 1 - SATURATED)

    def parse_block(
        self, sentences: Iterable[Sentence], builder: Builder | None = None, *, tokenized: bool = False
    ) -> tuple[Trees, Array]:
        """Some sentences with their trees, as flat arrays, and the distances of all words before their activation.

        Args:
            sentences: Strings, or lists of words, all of which are worked on at once.
            builder: How distances become a tree; the model's own unless one is named.
            tokenized: Whether strings are split at spaces only.

        """
        read, chosen = self.reader(tokenized).read(sentences), builder or self.builder
        scores = self._scored(read)
        return Trees(read.words, read.ends, *self.spans(scores, read.ends, chosen)), scores

    def spans(
        self, scores: Array, ends: NDArray[np.int64], builder: Builder
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """The constituents that scores imply: their starts, their ends, and where each sentence ends among them.

        Args:
            scores: Distances before their activation, of sentences that follow each other.
            ends: Where each sentence ends among the words of all.
            builder: How distances become a tree.

        """
        require_builder(builder)
        units = self.in_units(scores, builder)
        return (
            native.spans(units, ends, builder, self.threads) if native_in_use() else spans_of_many(units, ends, builder)
        )

    def offsets(self, sentence: Sentence, tokenized: bool = False) -> list[tuple[int, int]]:
        """Where each word begins and ends in a sentence, in characters.

        Args:
            sentence: A string; the words of a list stand a space apart.
            tokenized: Whether the string is split at spaces only.

        """
        if isinstance(sentence, str):
            return [(piece.begin, piece.end) for piece in self.tokenizer_for(tokenized).pieces(sentence)]
        ends = accumulate(len(word) + 1 for word in sentence)
        return [(end - 1 - len(word), end - 1) for word, end in zip(sentence, ends, strict=True)]

    def parse_many(
        self, sentences: Iterable[Sentence], builder: Builder | None = None, *, tokenized: bool = False
    ) -> Iterator[Parsed]:
        """Parse any number of sentences in bounded memory, in order.

        Args:
            sentences: Strings, or lists of words.
            builder: How distances become a tree; the model's own unless one is named.
            tokenized: Whether strings are split at spaces only.

        """
        for block in in_blocks(sentences):
            trees, scores = self.parse_block(block, builder, tokenized=tokenized)
            yield from map(Parsed, trees, _cut(scores, trees.ends))

    def require_finite(self, scores: Array, words: Sequence[str]) -> None:
        """Refuse distances that are not numbers, which weights of a network give that has diverged.

        Args:
            scores: One before each word.
            words: The words, for the message.

        Raises:
            InputError: One of them is not finite.

        """
        if not (finite := np.isfinite(scores)).all():
            word = words[int(finite.argmin())]
            cause = f"the distance before {word[:40]!r} is {scores[int(finite.argmin())]}"
            raise InputError(self.place, cause, "its weights are too large: did its training diverge?")

    def _scored(self, read: Sentences) -> Array:
        scores = self.network.scores(read.ids, read.ends, self.threads)
        self.require_finite(scores, read.words)
        return scores

    @cached_property
    def _reader(self) -> WordReader:
        return WordReader(self.tokenizer, self.vocabulary)

    @cached_property
    def _reader_of_words(self) -> WordReader:
        return WordReader(self._split_already, self.vocabulary)

    def save_weights(self, path: Path) -> None:
        """Write the weights as `load` reads them.

        Args:
            path: The file, which is replaced in one step.

        """
        write_arrays(path, self._weights, {"lookahead": self.network.lookahead})

    def __reduce__(self) -> tuple[type[Parser], tuple[Any, ...]]:
        """What other processes get: not what was remembered."""
        weights = {**self._weights, SCALE: np.array(self.scale, dtype=np.float32)}
        return type(self), (self.recipe, self.vocabulary, weights, self.place, self.network.lookahead)


def _require_parsing(recipe: Recipe, place: str) -> None:
    if not recipe.model.parsing:
        raise InputError(place, "has no parsing network", "use a model with model.parsing = true")


def in_blocks(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """Some sentences at a time, enough to be worth the work of starting."""
    block: list[Sentence] = []
    size = 0
    for sentence in sentences:
        block.append(sentence)
        size += 1 + (len(sentence) // CHARACTERS_A_WORD if isinstance(sentence, str) else len(sentence))
        if size >= BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def _cut(found: Array, ends: NDArray[np.int64]) -> list[Scores]:
    scores = found.astype(np.float64)
    return [scores[begin:end] for begin, end in pairwise([0, *ends.tolist()])]
