"""The parsing network alone, in evaluation mode, with numpy: text in, distances and trees out.

    h_t  =  ReLU(γ (Σ_k W_k e_{t−L+k} + b_c − μ) / √(σ² + ε) + β)  =  ReLU(Σ_k V_k e_{t−L+k} + v)
    d_t  =  act(w · h_t + b)

Batch norm is folded into the convolution: V_k and v. Words repeat, so V_k e is worked out once for each different word
of a block and looked up for each place. A sentence is read after L zero vectors and the token that precedes sentences,
so neither its neighbours nor its block change its distances. Trees are built from w · h_t + b, which has no flat parts:
where the activation saturates, it still tells places apart.

    # T tokens of a block, U different ones among them, L look-back, E embedding, C channels
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from prpn.config import Recipe, read_saved_recipe
from prpn.errors import InputError
from prpn.text.tokenizer import Tokenizer
from prpn.text.vocabulary import Vocabulary
from prpn.trees.from_distances import Builder, build
from prpn.trees.tree import Tree

Array = NDArray[np.float32]
Scores = NDArray[np.float64]

BLOCK = 16_384
"""Tokens that are worked on at once: enough that most of them repeat, little enough to stay in some megabytes."""
BATCH_NORM_EPSILON = 1e-5
SATURATED = 0.01
"""A sigmoid this near to 0 or 1 is flat: its distances hardly differ."""


@dataclass(frozen=True)
class Parsed:
    """A sentence with its tree and the distances before their activation that it was built from."""

    tree: Tree
    scores: Scores


class Parser:
    """The parsing network of a trained model, with its tokenizer and vocabulary."""

    def __init__(self, recipe: Recipe, vocabulary: Vocabulary, weights: Mapping[str, Array], place: str = "") -> None:
        self.recipe, self.vocabulary = recipe, vocabulary
        self.tokenizer = Tokenizer(recipe.text)
        self._split_already = Tokenizer(recipe.text, tokenized=True)
        if not recipe.model.parsing:
            raise InputError(place or recipe.name, "has no parsing network", "use a model with model.parsing = true")
        try:
            self._fold(weights)
        except KeyError as error:
            raise InputError(place, f"no {error.args[0]} among the weights", "is this a model folder?") from None

    @classmethod
    def load(cls, folder: str | Path) -> Parser:
        """Read what parsing needs of a model folder."""
        folder = Path(folder)
        if not (folder / "config.json").is_file():
            raise InputError(str(folder), "not a model folder (no config.json)", "train one with `prpn train`")
        recipe, path = read_saved_recipe(folder / "config.json"), folder / "model.safetensors"
        try:
            with safe_open(path, framework="numpy") as file:
                names = [name for name in file.keys() if name.startswith(("embedding.", "parsing."))]  # noqa: SIM118
                weights = {name: file.get_tensor(name) for name in names}
        except FileNotFoundError:
            raise InputError(str(path), "no such file", "is this a model folder?") from None
        except (SafetensorError, OSError) as error:
            raise InputError(str(path), f"not a readable safetensors file ({error})") from None
        return cls(recipe, Vocabulary.load(folder / "vocabulary.json"), weights, str(path))

    @property
    def builder(self) -> Builder:
        """How this model's distances become a tree unless one asks for another way."""
        return self.recipe.model.builder

    def words(self, sentence: str | Sequence[str], tokenized: bool = False) -> list[str]:
        """The words of a sentence as they are written; a list of words stays as it is."""
        if not isinstance(sentence, str):
            return list(sentence)
        return (self._split_already if tokenized else self.tokenizer).words(sentence)

    def scores(self, sentences: Sequence[Sequence[str]]) -> list[Scores]:
        """Distances before their activation, one before each word, of sentences given as words."""
        lookback, normalize = self.recipe.model.lookback, self.tokenizer.normalize
        silence = len(self.vocabulary)  # stands for the zero vector
        before = [silence] * lookback + [self.vocabulary.start]
        ids: list[int] = []
        places: list[int] = []
        for words in sentences:
            ids += before
            places += range(len(ids), len(ids) + len(words))
            ids += self.vocabulary.encode(map(normalize, words))
        found = self._scores_at(np.array(ids, dtype=np.int64), np.array(places, dtype=np.int64))
        ends = accumulate(len(words) for words in sentences)
        return [found[end - len(words) : end] for words, end in zip(sentences, ends, strict=True)]

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
        return [Parsed(build(words, scores, chosen), scores) for words, scores in pairs]

    def parse_many(
        self,
        sentences: Iterable[str | Sequence[str]],
        builder: Builder | None = None,
        *,
        tokenized: bool = False,
        one_by_one: bool = False,
    ) -> Iterator[Parsed]:
        """Parse any number of sentences in bounded memory, in order; `one_by_one` answers each at once."""
        waiting: list[list[str]] = []
        size = 0
        for sentence in sentences:
            waiting.append(self.words(sentence, tokenized))
            size += len(waiting[-1]) + 1
            if size >= BLOCK or one_by_one:
                yield from self.parse_words(waiting, builder)
                waiting, size = [], 0
        if waiting:
            yield from self.parse_words(waiting, builder)

    def _fold(self, weights: Mapping[str, Array]) -> None:
        kernel = weights["parsing.convolution.weight"]  # (C, E, L + 1)
        # The first head gives d_t; in the released form it reads the first half of the channels only.
        head = weights["parsing.heads.weight"][0, :, 0]
        used = slice(0, len(head))
        spread = np.sqrt(weights["parsing.norm.running_var"][used] + BATCH_NORM_EPSILON)
        gain = weights["parsing.norm.weight"][used] / spread
        shift = weights["parsing.convolution.bias"][used] - weights["parsing.norm.running_mean"][used]
        self._kernel = (gain[:, None, None] * kernel[used]).transpose(1, 2, 0)  # (E, L + 1, C)
        self._bias = gain * shift + weights["parsing.norm.bias"][used]  # (C,)
        self._head, self._head_bias = head, float(weights["parsing.heads.bias"][0])
        self._embedding = np.concatenate([weights["embedding.weight"], np.zeros_like(weights["embedding.weight"][:1])])

    def _scores_at(self, ids: NDArray[np.int64], places: NDArray[np.int64]) -> Scores:
        """Scores at some places of a sequence of ids, block by block."""
        size, windows, channels = self._kernel.shape
        scores = np.empty(len(places))
        for begin in range(0, len(places), BLOCK):
            block = places[begin : begin + BLOCK]
            first = block[0] - windows + 1
            different, inverse = np.unique(ids[first : block[-1] + 1], return_inverse=True)
            rows = self._embedding[different] @ self._kernel.reshape(size, -1)  # (U, (L + 1) C)
            rows = rows.reshape(len(different), windows, channels)
            hidden = np.tile(self._bias, (len(block), 1))  # (T, C)
            for k in range(windows):
                hidden += rows[inverse[block - first - windows + 1 + k], k]
            scores[begin : begin + BLOCK] = np.maximum(hidden, 0, out=hidden) @ self._head + self._head_bias
        return scores
