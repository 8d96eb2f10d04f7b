"""The parsing network alone, in evaluation mode, without torch: text in, distances and trees out.

`folded` has the mathematics. Trees are built from w · h_t + b, which has no flat parts: where the activation saturates,
it still tells places apart. Builders that lean want them in units of their standard deviation, which is measured on
held-out text when training ends, and kept among the weights.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from prpn.config import Builder, Recipe, read_saved_recipe
from prpn.embedded import model_folder
from prpn.errors import ConfigError, InputError
from prpn.parsing.folded import Array, Folded
from prpn.text.tokenizer import Tokenizer
from prpn.text.vocabulary import Vocabulary
from prpn.trees.from_distances import LEANING, build
from prpn.trees.tree import Tree

Scores = NDArray[np.float64]
Number = TypeVar("Number", bound="np.floating[Any]")

BLOCK = 16_384
"""Tokens that are worked on at once: enough that most of them repeat, little enough to stay in some megabytes."""
WEIGHTS = "model.safetensors"
DISTILLED = "parser.safetensors"
"""Where a folder keeps a parsing network that learned from others (`prpn.distillation`)."""
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
        self.recipe, self.vocabulary, self.place = recipe, vocabulary, place or recipe.name
        self.tokenizer = Tokenizer(recipe.text)
        if not recipe.model.parsing:
            raise InputError(self.place, "has no parsing network", "use a model with model.parsing = true")
        self.scale = float(weights.get("parsing.distance_scale", 0.0))
        try:
            self.network = Folded(weights, vocabulary.start, lookahead)
        except KeyError as error:
            raise InputError(place, f"no {error.args[0]} among the weights", "is this a model folder?") from None
        if (rows := len(weights["embedding.weight"])) != len(vocabulary):
            cause = f"has weights for {rows:,} tokens, but the vocabulary holds {len(vocabulary):,}"
            raise InputError(self.place, cause, "take weights and vocabulary of the same model")

    @classmethod
    def load(cls, model: str | Path | None = None) -> Parser:
        """Read what parsing needs of a model: the distilled parsing network, or else the model's own."""
        folder = model_folder(model)
        recipe, distilled = read_saved_recipe(folder / "config.json"), folder / DISTILLED
        path = distilled if distilled.is_file() else folder / WEIGHTS
        try:
            with safe_open(path, framework="numpy") as file:
                lookahead = int(json.loads((file.metadata() or {}).get("json", "{}")).get("lookahead", 0))
                names = [name for name in file.keys() if name.startswith(("embedding.", "parsing."))]  # noqa: SIM118
                weights = {name: file.get_tensor(name).astype(np.float32) for name in names}
        except FileNotFoundError:
            raise InputError(str(path), "no such file", "is this a model folder?") from None
        except (SafetensorError, OSError) as error:
            raise InputError(str(path), f"not a readable safetensors file ({error})") from None
        return cls(recipe, Vocabulary.load(folder / "vocabulary.json"), weights, str(path), lookahead)

    @property
    def builder(self) -> Builder:
        """How this model's distances become a tree unless one asks for another way."""
        return self.recipe.model.builder

    def through(self, builder: Builder) -> Parser:
        """The same network with another builder of its own."""
        other = copy(self)
        other.recipe = replace(self.recipe, model=replace(self.recipe.model, builder=builder))
        return other

    def require_words(self) -> None:
        """Refuse a model of characters: to it every word of a tree is unknown."""
        if self.tokenizer.by_character:
            raise ConfigError(f"{self.place} is a model of characters: give one of words")

    @cached_property
    def _split_already(self) -> Tokenizer:
        return Tokenizer(self.recipe.text, tokenized=True)

    def tokenizer_for(self, tokenized: bool) -> Tokenizer:
        """The model's tokenizer, or one for text that is split already."""
        return self._split_already if tokenized else self.tokenizer

    def words(self, sentence: str | Sequence[str], tokenized: bool = False) -> list[str]:
        """The words of a sentence as they are written; a list of words stays as it is."""
        if not isinstance(sentence, str):
            return list(sentence)
        return self.tokenizer_for(tokenized).words(sentence)

    def scores(self, sentences: Sequence[Sequence[str]]) -> list[Scores]:
        """Distances before their activation, one before each word, of sentences given as words."""
        ids = self.vocabulary.encode(self.tokenizer.normalize(word) for words in sentences for word in words)
        return self.scores_of_ids(np.array(ids, dtype=np.int32), list(map(len, sentences)))

    def scores_of_ids(self, ids: NDArray[np.int32], lengths: Sequence[int]) -> list[Scores]:
        """The same of sentences of these lengths, given as numbers of the vocabulary."""
        ends = np.cumsum([0, *lengths])
        found = self.network.scores(ids, ends[1:]).astype(np.float64)
        return [found[begin:end] for begin, end in pairwise(ends.tolist())]

    def in_units(self, scores: NDArray[Number], builder: Builder) -> NDArray[Number]:
        """Scores as a builder wants them."""
        if builder not in LEANING:
            return scores
        if not self.scale:
            remedy = "finish its training with --resume, or build with paper or unbiased"
            raise InputError(self.place, f"{builder} needs the spread of distances, which was not measured", remedy)
        return (scores.astype(np.float32) / np.float32(self.scale)).astype(scores.dtype)

    def activated(self, scores: Scores) -> Scores:
        """The distances themselves: what the gates compare."""
        return (1 + np.tanh(scores / 2)) / 2 if self.recipe.model.flavour == "released" else np.maximum(scores, 0)

    def saturated(self, scores: Scores) -> NDArray[np.bool_]:
        """Where the activation is flat, so that the gates cannot tell distances apart."""
        distances = self.activated(scores)
        if self.recipe.model.flavour == "paper":
            return distances == 0
        return (distances < SATURATED) | (distances > 1 - SATURATED)

    def parse_words(self, sentences: Sequence[Sequence[str]], builder: Builder | None = None) -> list[Parsed]:
        """Parse sentences given as words."""
        chosen = builder or self.builder
        pairs = zip(sentences, self.scores(sentences), strict=True)
        return [Parsed(build(words, self.in_units(scores, chosen), chosen), scores) for words, scores in pairs]

    def parse_many(
        self,
        sentences: Iterable[str | Sequence[str]],
        builder: Builder | None = None,
        *,
        tokenized: bool = False,
    ) -> Iterator[Parsed]:
        """Parse any number of sentences in bounded memory, in order."""
        waiting: list[list[str]] = []
        size = 0
        for sentence in sentences:
            waiting.append(self.words(sentence, tokenized))
            size += len(waiting[-1]) + 1
            if size >= BLOCK:
                yield from self.parse_words(waiting, builder)
                waiting, size = [], 0
        if waiting:
            yield from self.parse_words(waiting, builder)
