"""A trained model: text in; trees, distances and language scores out.

    model = prpn.load()     # the embedded English model; or prpn.load("runs/mine")
    model.parse("the old man sat on the bench"), model.distances("…")
    for tree in model.pipe(lines): ...
    model.parse_file("in.txt", "out.trees")
    model.perplexity("…"), model.surprisal("…"), model.generate("…")
    model.save("elsewhere")

Text is tokenised as the training text was; a list of strings is taken as the words of one sentence. A model never
changes, so any number of threads may use one, and it can be pickled. Parsing needs no torch; the network of the
language model is made when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from secrets import randbits
from sys import maxsize
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from prpn.config import Builder, Recipe, read_saved_recipe, save_recipe
from prpn.errors import ConfigError, InputError
from prpn.locks import lock_across_forks
from prpn.models.files import CONFIG, DISTILLED, VOCABULARY, WEIGHTS, make_new_folder
from prpn.models.folder import model_folder
from prpn.models.weights import Array, read_network, write_arrays
from prpn.parsing.parser import Parser
from prpn.parsing.pipe import checked_all, lines_of, trees_of
from prpn.parsing.text import FileCounts, parse_into
from prpn.parsing.words import Sentence, checked
from prpn.text import fitness
from prpn.text.atomic import output
from prpn.text.files import place_of, read_pieces
from prpn.text.lines import Pieces, numbered_lines, pieces_of
from prpn.text.tokenizer import Tokenizer
from prpn.text.vocabulary import Vocabulary
from prpn.trees.tree import Tree

if TYPE_CHECKING:
    import torch

    from prpn.api.training import Paths
    from prpn.kernels.parsing import Format
    from prpn.language.cache_pointer import CachePointer
    from prpn.language.generation import Sampling
    from prpn.language.surprisal import ScoredToken
    from prpn.model import PRPN
    from prpn.text.corpus import Corpus, Progress
    from prpn.training.evaluate import LanguageScore

_MAKING = lock_across_forks()
"""Held while a network is made."""


class Model:
    """A recipe, a vocabulary, and the weights of a language model, of a parser, or of both."""

    def __init__(
        self,
        recipe: Recipe,
        vocabulary: Vocabulary,
        network: PRPN | None = None,
        distilled: Parser | None = None,
        weights: Mapping[str, Array] | None = None,
        place: str = "",
    ) -> None:
        """Put together what a folder holds; `load` is the usual way.

        Args:
            recipe: How text becomes tokens, and what the network is.
            vocabulary: The tokens it knows.
            network: The network, if there is one already.
            distilled: A parser that learned from others, which is used in place of the network's own.
            weights: The network's weights, from which it is made when it is first asked for.
            place: How messages call the model.

        Raises:
            ConfigError: The network is not the recipe's, or not of this vocabulary.

        """
        if network is not None:
            _require_fit(network, recipe, vocabulary)
        self.recipe, self.vocabulary, self.place = recipe, vocabulary, place or recipe.name
        self._network, self._weights, self._distilled = network and network.eval(), weights, distilled
        self._tokenizer = Tokenizer(recipe.text)

    @property
    def network(self) -> PRPN:
        """The network itself, for whoever wants to look inside or to train it in a loop of their own."""
        if self._network is None:
            if self._weights is None:
                raise InputError(self.place, "is a parser without a language model", "ask it for trees alone")
            with _MAKING:
                if self._network is None:
                    from prpn.training.checkpoint import network_of, tensors_of

                    weights = tensors_of(self._weights)
                    self._network = network_of(self.recipe.model, len(self.vocabulary), weights, self.place).eval()
        return self._network

    @property
    def device(self) -> torch.device:
        """Where the network computes."""
        return self.network.decoder.bias.device

    def to(self, device: str) -> Model:
        """The same model with its network elsewhere; parsing stays on the processor, where it is fastest.

        Args:
            device: Where the network shall compute, such as `cuda`.

        Raises:
            ConfigError: There is no such device.

        """
        from copy import deepcopy

        from prpn.training.run import usable_device

        network = deepcopy(self.network).to(usable_device(device))
        return Model(self.recipe, self.vocabulary, network, self._distilled, place=self.place)

    def at_temperature(self, temperature: float) -> Model:
        """The same weights with gates of another sharpness.

        Args:
            temperature: τ, more than 0; `math.inf` opens and closes gates fully, as in the trees.

        """
        from prpn.model import PRPN

        recipe = replace(self.recipe, model=replace(self.recipe.model, temperature=temperature))
        network = PRPN(recipe.model, len(self.vocabulary))
        network.load_state_dict(self.network.state_dict())
        return Model(recipe, self.vocabulary, network.to(self.network.decoder.bias), self._distilled, place=self.place)

    def save(self, folder: str | Path) -> None:
        """Write a model folder, which `load` reads.

        Args:
            folder: Where to; it must be new or empty.

        Raises:
            InputError: The folder is in use or cannot be written, or the network has parts that no folder has.

        """
        weights = self._arrays() if self._speaks else None
        out = make_new_folder(Path(folder))
        if weights is not None:
            write_arrays(out / WEIGHTS, weights)
        if self._distilled is not None:
            self._distilled.save_weights(out / DISTILLED)
        self.vocabulary.save(out / VOCABULARY)
        save_recipe(self.recipe, out / CONFIG)  # which makes it a model folder: last

    def tokens(self, sentence: Sentence) -> list[str]:
        """The sentence as the model sees it: split and normalised as in training.

        Args:
            sentence: A string, or a list of its words.

        """
        tokenizer = self._tokenizer
        if isinstance(checked(sentence), str):
            return tokenizer.tokens(str(sentence))
        return [tokenizer.normalize(word) for word in sentence]

    @cached_property
    def parser(self) -> Parser:
        """The parsing network by itself; the distilled one if the model came with one."""
        return self._distilled or Parser(self.recipe, self.vocabulary, self._arrays(), self.place)

    def scores(self, sentence: Sentence) -> NDArray[np.float64]:
        """Distances before their activation, one a word: what trees are built from, since they hardly ever tie.

        Args:
            sentence: A string, or a list of its words.

        """
        return self.parser.scores([checked(sentence)])[0]

    def distances(self, sentence: Sentence) -> NDArray[np.float64]:
        """The syntactic distance before each word.

        Args:
            sentence: A string, or a list of its words.

        """
        return self.parser.activated(self.scores(sentence))

    def parse(self, sentence: Sentence, builder: Builder | None = None) -> Tree:
        """The tree of one sentence, over its words as they are written.

        Args:
            sentence: A string, or a list of its words.
            builder: How distances become a tree; the model's own unless one is named.

        Raises:
            InputError: `sentence` is neither, or a list of several sentences.

        """
        trees, _ = self.parser.parse_block([checked(sentence)], builder)
        return next(iter(trees))

    @overload
    def pipe(
        self,
        sentences: Iterable[Sentence],
        builder: Builder | None = None,
        *,
        tokenized: bool = False,
        form: Literal["tree"] = "tree",
    ) -> Iterator[Tree]: ...
    @overload
    def pipe(
        self, sentences: Iterable[Sentence], builder: Builder | None = None, *, tokenized: bool = False, form: Format
    ) -> Iterator[str]: ...
    def pipe(
        self,
        sentences: Iterable[Sentence],
        builder: Builder | None = None,
        *,
        tokenized: bool = False,
        form: Format | Literal["tree"] = "tree",
    ) -> Iterator[Tree] | Iterator[str]:
        """The trees of any number of sentences, in order, in bounded memory.

        Args:
            sentences: Strings, or lists of words; an open file will do.
            builder: How distances become a tree; the model's own unless one is named.
            tokenized: Strings are split at spaces only.
            form: `tree` for objects; `brackets`, `labelled`, `spans` or `jsonl` for strings, several times as fast.

        Raises:
            InputError: With its number, the first item that is no sentence.

        """
        items = checked_all(sentences)
        if form == "tree":
            return trees_of(self.parser, items, builder, tokenized)
        return lines_of(self.parser, items, form, builder, tokenized)

    def parse_file(
        self,
        path: str | Path,
        out: str | Path,
        *,
        form: Format = "brackets",
        builder: Builder | None = None,
        tokenized: bool = False,
        strict: bool = False,
        progress: Progress | None = None,
    ) -> FileCounts:
        """Parse a file with one sentence a line into another with one tree a line: `prpn parse` from Python.

        Args:
            path: The text; compressed files are read as what they hold.
            out: Where the trees go. It gets its name once it is complete.
            form: `brackets`, `labelled`, `spans` or `jsonl`.
            builder: How distances become a tree; the model's own unless one is named.
            tokenized: The text is split at spaces only.
            strict: Whether a line that is not text ends the job, rather than its tree being empty.
            progress: Is told how many more lines are done.

        Returns:
            How many lines there were, how many of them were not text, and what is wrong with the first of these.

        """
        fitness.warn(path, self.parser.tokenizer_for(tokenized), self.vocabulary)
        with output(Path(out)) as file:
            return parse_into(
                file.writelines, self.parser, str(path), form, builder,
                tokenized=tokenized, strict=strict, progress=progress or (lambda _: None),
            )  # fmt: skip

    def train(
        self, texts: Paths, *, out: str | Path, settings: Mapping[str, Any] | None = None, **options: Any
    ) -> Model:
        """Go on learning from other text, beginning with these weights and with the recipe they were learned by.

        Args:
            texts: A file with one sentence a line, or several.
            out: The model folder to make.
            settings: Fields of the recipe to override, such as `{"training.epochs": 1}`.
            options: Whatever else `prpn.train` takes.

        Returns:
            The new model; this one stays as it is.

        Raises:
            InputError: The model is a parser without a language model, or a file or folder cannot be used.

        """
        from prpn.api.training import train

        with TemporaryDirectory() as name:
            speaker = Model(self.recipe, self.vocabulary, weights=self._arrays(), place=self.place)
            speaker.save(start := Path(name, "start"))
            return train(self.recipe, texts, out=out, init=start, settings=settings, **options)

    def perplexity(self, text: str) -> float:
        """Perplexity of a text.

        Args:
            text: One sentence a line.

        Raises:
            InputError: There is no token in it, or the model is a parser without a language model.

        """
        from prpn.language.surprisal import summary

        alone, _ = summary(self.surprisal(text), self._tokenizer.by_character)
        if alone.tokens == 0:
            raise InputError("text", "no token in it", "give at least one word")
        return alone.perplexity

    def surprisal(self, text: str, cache: CachePointer | None = None) -> list[ScoredToken]:
        """How many bits each token of a text tells; `</s>` closes each line.

        Args:
            text: One sentence a line.
            cache: A cache of recent words to mix in; none unless given.

        """
        if not isinstance(text, str):
            raise InputError("text", f"is of type {type(text).__name__}", "give a string with one sentence a line")
        return list(self._scored(pieces_of(text), self._tokenizer, cache))

    def score_tokens(
        self, path: str | Path, tokenized: bool = False, cache: CachePointer | None = None
    ) -> Iterator[ScoredToken]:
        """The surprisal of every token of a file, read bit by bit.

        Args:
            path: A text with one sentence a line; compressed files are read as what they hold.
            tokenized: The text is split at spaces only.
            cache: A cache of recent words to mix in; none unless given.

        """
        path = str(path)
        scored = self._scored(read_pieces(path), Tokenizer(self.recipe.text, tokenized), cache)
        first = next(scored, None)
        if first is None:
            raise InputError(place_of(path), "no token in it", "give a text with one sentence a line")
        return chain([first], scored)

    def score_file(self, path: str | Path, tokenized: bool = False, progress: Progress | None = None) -> LanguageScore:
        """Perplexity, bits per character and counts of a file, each token counted once.

        Args:
            path: A text with one sentence a line; compressed files are read as what they hold.
            tokenized: The text is split at spaces only.
            progress: Is told how many more tokens are done.

        """
        return self.score_corpus(self.encode_file(path, tokenized), progress)

    def score_corpus(self, corpus: Corpus, progress: Progress | None = None) -> LanguageScore:
        """The same of a text that is encoded already.

        Args:
            corpus: What `encode_file` gives.
            progress: Is told how many more tokens are done.

        """
        from prpn.training.evaluate import score

        return score(self.network, corpus, self.vocabulary, self.recipe.training, progress=progress)

    def encode_file(self, path: str | Path, tokenized: bool = False) -> Corpus:
        """A file as the numbers of its tokens.

        Args:
            path: A text with one sentence a line; compressed files are read as what they hold.
            tokenized: The text is split at spaces only.

        """
        from prpn.text.cache import default_cache
        from prpn.text.corpus import encode

        return encode([str(path)], Tokenizer(self.recipe.text, tokenized), self.vocabulary, default_cache())

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
        """The prompt and so many tokens after it, drawn from the model.

        Args:
            prompt: Text to go on from; without it a new sentence begins.
            tokens: How many to draw, line ends included.
            temperature: 1 draws as the model has it; lower is safer; 0 takes the most probable ones.
            top_k: Draw from so many of the most probable tokens; from all unless given.
            seed: The same seed draws the same text.
            unknown: Let `<unk>` and classes of unknown words be drawn, too.

        """
        from prpn.language.generation import Sampling, written

        sampling = Sampling(randbits(32) if seed is None else seed, temperature, top_k, unknown)
        return prompt + "".join(written(self.continuation(prompt, tokens, sampling), self._tokenizer, prompt))

    def continuation(self, prompt: str, tokens: int, sampling: Sampling) -> Iterator[str]:
        """So many tokens after a prompt, one by one.

        Args:
            prompt: Text to go on from; '' begins a new sentence.
            tokens: How many to draw, line ends included.
            sampling: How they are drawn.

        """
        from prpn.language.generation import generate, prompt_tokens

        if tokens < 1:
            raise ConfigError(f"{tokens} tokens to generate: give 1 or more")
        read, by_sentence = prompt_tokens(prompt, self._tokenizer), self.recipe.training.batching == "sentences"
        return islice(
            generate(self.network, self.vocabulary, read, sampling, by_sentence=by_sentence), min(tokens, maxsize)
        )

    def __repr__(self) -> str:
        """What kind of model this is."""
        parts = [name for name, has in (("language model", self._speaks), ("distilled parser", self._distilled)) if has]
        return f"<prpn.Model {self.recipe.name}: {' and '.join(parts)}, {len(self.vocabulary):,} tokens>"

    def __reduce__(self) -> tuple[Callable[..., Model], tuple[Any, ...]]:
        """Other processes get the weights, on the processor."""
        weights = self._arrays() if self._speaks else None
        return Model, (self.recipe, self.vocabulary, None, self._distilled, weights, self.place)

    @property
    def _speaks(self) -> bool:
        return self._network is not None or self._weights is not None

    def _arrays(self) -> Mapping[str, Array]:
        """The weights as they are now."""
        if self._network is None and self._weights is not None:
            return self._weights
        from prpn.model import PRPN
        from prpn.training.checkpoint import arrays_of, names_of

        if type(self.network) is not PRPN:
            own = sorted(self.network.state_dict().keys() - names_of(self.network.config))
            if own:
                cause = f"its network has weights that prpn.PRPN does not have ({own[0]})"
                remedy = "keep these with torch.save, and give Model a PRPN that loads the others with strict=False"
                raise InputError(self.place, cause, remedy)
        return arrays_of(self.network)

    def _scored(self, pieces: Pieces, tokenizer: Tokenizer, cache: CachePointer | None) -> Iterator[ScoredToken]:
        from prpn.language.surprisal import scored_tokens

        lines = numbered_lines([pieces], tokenizer)
        return scored_tokens(self.network, self.vocabulary, self.recipe.training, lines, cache)


def _require_fit(network: PRPN, recipe: Recipe, vocabulary: Vocabulary) -> None:
    """Refuse a network that would not be the same once it is saved and read again."""
    if network.config.shape != recipe.model.shape:
        raise ConfigError(
            f"the network's configuration is not the recipe's: give Recipe({recipe.name!r}, model=…) its own"
        )
    if (tokens := network.embedding.num_embeddings) != len(vocabulary):
        raise ConfigError(
            f"a network of {tokens:,} tokens with a vocabulary of {len(vocabulary):,}: give the one it is for"
        )


def load(model: str | Path | None = None, device: str = "cpu") -> Model:
    """Read a model folder, or a model that comes with the package, by its name.

    Args:
        model: A folder as `prpn train` or `prpn distill` makes it, or a name; without either the embedded `english`.
        device: Where its network shall compute, such as `cuda`.

    Raises:
        InputError: It is no model folder, or one whose files do not belong together.

    """
    folder = model_folder(model)
    recipe, vocabulary = read_saved_recipe(folder / CONFIG), Vocabulary.load(folder / VOCABULARY)
    distilled = Parser.load(folder) if (folder / DISTILLED).exists() else None
    weights = None
    if distilled is None or (folder / WEIGHTS).exists():
        weights = read_network(folder / WEIGHTS, recipe.model, len(vocabulary))
    loaded = Model(recipe, vocabulary, None, distilled, weights, str(folder))
    return loaded if device == "cpu" else loaded.to(device)
