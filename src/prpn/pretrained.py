"""A trained model, read from its folder: text in, language scores, distances and trees out.

    model = prpn.load()     # the embedded English model; or prpn.load("runs/mine")
    model.distances("the old man sat on the bench"), model.parse("…")
    model.perplexity("…"), model.score("…"), model.generate("…")
    model.at_temperature(math.inf)
    prpn.evaluate(model, "treebank.mrg")

Text is tokenised as the training text was; a list of strings is taken as tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from secrets import randbits
from sys import maxsize

import numpy as np
from numpy.typing import NDArray

from prpn.config import Recipe, read_saved_recipe
from prpn.embedded import model_folder
from prpn.errors import ConfigError, InputError
from prpn.language.cache_pointer import CachePointer
from prpn.language.generation import Sampling, generate, prompt_tokens, written
from prpn.language.surprisal import ScoredToken, scored_tokens, summary
from prpn.model import PRPN
from prpn.parsing.parser import DISTILLED, WEIGHTS, Parser
from prpn.text.cache import default_cache
from prpn.text.corpus import Corpus, Progress, encode
from prpn.text.files import place_of, read_pieces
from prpn.text.lines import Pieces, numbered_lines, pieces_of
from prpn.text.tokenizer import Tokenizer
from prpn.text.vocabulary import Vocabulary
from prpn.training.checkpoint import arrays_of, load_weights, read_tensors
from prpn.training.evaluate import LanguageScore, score
from prpn.trees import Builder, Tree
from prpn.trees.cleaning import Cleaning, load_treebank
from prpn.trees.evaluation import Evaluation, common_builder, evaluate_parsers
from prpn.trees.protocols import protocols_named


class Model:
    """A network with its recipe and vocabulary."""

    def __init__(
        self, recipe: Recipe, vocabulary: Vocabulary, network: PRPN, distilled: Parser | None = None
    ) -> None:  # fmt: skip
        self.recipe, self.vocabulary, self.network = recipe, vocabulary, network.eval()
        self._tokenizer, self._distilled = Tokenizer(recipe.text), distilled

    def at_temperature(self, temperature: float) -> Model:
        """The same weights with gates of another τ; `math.inf` opens and closes them fully, as in the trees."""
        recipe = replace(self.recipe, model=replace(self.recipe.model, temperature=temperature))
        network = PRPN(recipe.model, len(self.vocabulary))
        network.load_state_dict(self.network.state_dict())
        return Model(recipe, self.vocabulary, network.to(self.network.decoder.bias), self._distilled)

    def tokens(self, sentence: str | Sequence[str]) -> list[str]:
        """The sentence as the model sees it: split and normalised as in training."""
        tokenizer = self._tokenizer
        return tokenizer.tokens(sentence) if isinstance(sentence, str) else [tokenizer.normalize(w) for w in sentence]

    @cached_property
    def parser(self) -> Parser:
        """The parsing network by itself; the distilled one if the model came with one."""
        return self._distilled or Parser(self.recipe, self.vocabulary, arrays_of(self.network))

    def scores(self, sentence: str | Sequence[str]) -> NDArray[np.float64]:
        """Distances before their activation, one a word: what trees are built from, since they hardly ever tie."""
        return self.parser.scores([self.parser.words(sentence)])[0]

    def distances(self, sentence: str | Sequence[str]) -> NDArray[np.float64]:
        """The syntactic distance before each word."""
        return self.parser.activated(self.scores(sentence))

    def parse(self, sentence: str | Sequence[str], builder: Builder | None = None) -> Tree:
        """The tree that the distances imply, over the words as they are written."""
        return next(self.parse_many([sentence], builder))

    def parse_many(self, sentences: Iterable[str | Sequence[str]], builder: Builder | None = None) -> Iterator[Tree]:
        """Parse any number of sentences, in order, in bounded memory."""
        return (parsed.tree for parsed in self.parser.parse_many(sentences, builder))

    def perplexity(self, text: str) -> float:
        """Perplexity of a text, one sentence a line."""
        alone, _ = summary(self.score(text), self._tokenizer.by_character)
        if alone.tokens == 0:
            raise InputError("text", "no token in it", "give at least one word")
        return alone.perplexity

    def score(self, text: str, cache: CachePointer | None = None) -> list[ScoredToken]:
        """The surprisal of every token of a text, one sentence a line; `</s>` closes each."""
        return list(self._scored(pieces_of(text), self._tokenizer, cache))

    def score_tokens(
        self, path: str, tokenized: bool = False, cache: CachePointer | None = None
    ) -> Iterator[ScoredToken]:
        """The surprisal of every token of a file, read bit by bit."""
        scored = self._scored(read_pieces(path), Tokenizer(self.recipe.text, tokenized), cache)
        first = next(scored, None)
        if first is None:
            raise InputError(place_of(path), "no token in it", "give a text with one sentence a line")
        return chain([first], scored)

    def score_file(self, path: str, tokenized: bool = False, progress: Progress | None = None) -> LanguageScore:
        """Perplexity, bits per character and counts of a file, read as `protocol` says."""
        return self.score_corpus(self.encode_file(path, tokenized), progress)

    def score_corpus(self, corpus: Corpus, progress: Progress | None = None) -> LanguageScore:
        """The same of a text that is encoded already."""
        return score(self.network, corpus, self.vocabulary, self.recipe.training, progress=progress)

    def encode_file(self, path: str, tokenized: bool = False) -> Corpus:
        """A file as the numbers of its tokens."""
        return encode([path], Tokenizer(self.recipe.text, tokenized), self.vocabulary, default_cache())

    def generate(
        self,
        prompt: str = "",
        tokens: int = 100,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        seed: int | None = None,
        unknown: bool = False,
    ) -> str:
        """The prompt and so many tokens after it, drawn from the model; temperature 0 takes the most probable ones."""
        sampling = Sampling(randbits(32) if seed is None else seed, temperature, top_k, unknown)
        return prompt + "".join(written(self.continuation(prompt, tokens, sampling), self._tokenizer, prompt))

    def continuation(self, prompt: str, tokens: int, sampling: Sampling) -> Iterator[str]:
        """So many tokens after a prompt, one by one."""
        if tokens < 1:
            raise ConfigError(f"{tokens} tokens to generate: give 1 or more")
        read, by_sentence = prompt_tokens(prompt, self._tokenizer), self.recipe.training.batching == "sentences"
        return islice(
            generate(self.network, self.vocabulary, read, sampling, by_sentence=by_sentence), min(tokens, maxsize)
        )

    def _scored(self, pieces: Pieces, tokenizer: Tokenizer, cache: CachePointer | None) -> Iterator[ScoredToken]:
        lines = numbered_lines([pieces], tokenizer)
        return scored_tokens(self.network, self.vocabulary, self.recipe.training, lines, cache)


def load(model: str | Path | None = None) -> Model:
    """Read a model folder, or a model that comes with the package, by its name: `english` if none is given."""
    folder = model_folder(model)
    distilled = (folder / DISTILLED).is_file()
    if distilled and not (folder / WEIGHTS).is_file():
        raise InputError(str(folder), "is a parser without a language model", "use Parser.load, or `prpn parse`")
    recipe = read_saved_recipe(folder / "config.json")
    vocabulary = Vocabulary.load(folder / "vocabulary.json")
    network = PRPN(recipe.model, len(vocabulary))
    weights, _ = read_tensors(folder / WEIGHTS)
    load_weights(network, weights, str(folder / WEIGHTS))
    return Model(recipe, vocabulary, network, Parser.load(folder) if distilled else None)


def evaluate(
    model: Model | Parser | Sequence[Model | Parser],
    treebank: str | Path | Sequence[str | Path],
    *,
    builder: Builder | None = None,
    protocols: str | Sequence[str] = (),
    maximum_words: int | None = None,
) -> Evaluation:
    """Score models on a treebank: every protocol unless some are named, beside every baseline.

    `evaluate(model, "wsj.mrg").systems["model"]["kim"].f1` is in percent; several models are `model 1`, `model 2`, …
    """
    models = [model] if isinstance(model, Model | Parser) else list(model)
    parsers = [each.parser if isinstance(each, Model) else each for each in models]
    names = ["model"] if len(parsers) == 1 else [f"model {i}" for i in range(1, len(parsers) + 1)]
    paths = [treebank] if isinstance(treebank, str | Path) else treebank
    by_name, chosen = dict(zip(names, parsers, strict=True)), [protocols] if isinstance(protocols, str) else protocols
    through = builder or common_builder(by_name)
    loaded = load_treebank(paths, Cleaning(maximum=maximum_words))
    return evaluate_parsers(loaded, by_name, protocols_named(chosen), through)
