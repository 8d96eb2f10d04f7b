"""The tokens a model knows, and their numbers.

    id 0 `<unk>`   every token the model does not know and that belongs to no class below
    id 1 `</s>`    the end of a line, and what stands before the first token of a text
    id 2 `<s>`     the start of a sentence, only for models that read sentence by sentence
    then classes of unknown words, if wanted (`prpn.text.unknown_words`)
    then words by falling count, words of equal count in code point order

The order depends on the counts alone, so that two machines number the same text alike.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from prpn.errors import ConfigError, InputError
from prpn.models.files import read_json
from prpn.text.atomic import replacing
from prpn.text.unknown_words import PREFIX, classes_of, frequent_classes

UNKNOWN = "<unk>"
END = "</s>"
START = "<s>"
SPECIAL_TOKENS = (UNKNOWN, END, START)


def is_unknown(token: str) -> bool:
    """Whether a token of a vocabulary stands for words that it does not have."""
    return token == UNKNOWN or token.startswith(PREFIX)


@dataclass(frozen=True)
class Vocabulary:
    """Tokens by id; immutable, compared by its tokens."""

    tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        missing = [token for token in (UNKNOWN, END) if token not in self._ids]
        if missing:
            raise ConfigError(f"a vocabulary needs {' and '.join(missing)}")
        if len(self._ids) != len(self.tokens):
            raise ConfigError("a vocabulary holds each token once, but this one repeats some")

    @staticmethod
    def build(
        counts: Mapping[str, int], minimum_count: int, maximum_size: int, *, with_start: bool, unknown_classes: int = 0
    ) -> Vocabulary:
        """Take the special tokens, classes of unknown words, and the most frequent words.

        Args:
            counts: How often each word was seen.
            minimum_count: How often a word must have been seen to be known; 1 keeps all.
            maximum_size: Tokens there may be, special ones included; 0: any number.
            with_start: Whether there is a token `<s>`, for models that read sentence by sentence.
            unknown_classes: Classes of unknown words; 0: one `<unk>` for all.

        Raises:
            ConfigError: No word is left.

        """
        special = SPECIAL_TOKENS if with_start else (UNKNOWN, END)
        own = (word for word in counts if word not in SPECIAL_TOKENS and not is_unknown(word))
        words = sorted(own, key=lambda word: (-counts[word], word))
        room = max(0, maximum_size - len(special) - unknown_classes) if maximum_size else len(words)
        known = [word for word in words[:room] if counts[word] >= minimum_count]
        rare = {word: counts[word] for word in words[len(known) :]}
        tokens = (*special, *frequent_classes(rare, unknown_classes), *known)
        if not known:
            raise ConfigError(
                f"empty vocabulary: of {sum(counts.values())} tokens no word is seen {minimum_count} times; give more "
                "text, lower text.minimum_count or raise text.maximum_size"
            )
        return Vocabulary(tokens)

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Give the ids of tokens, unknown ones as their class or `<unk>`.

        Args:
            tokens: As the model's tokenizer writes them.

        """
        find, unknown = self._ids.get, self.unknown
        if not self.has_classes:
            return [find(token, unknown) for token in tokens]
        return [self._class(token) if (index := find(token)) is None else index for token in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Give the tokens with these ids.

        Args:
            ids: Numbers from 0 to the number of tokens less 1.

        """
        return [self.tokens[index] for index in ids]

    @cached_property
    def unknown(self) -> int:
        """Id of `<unk>`."""
        return self._ids[UNKNOWN]

    @cached_property
    def unknown_ids(self) -> tuple[int, ...]:
        """Ids of `<unk>` and of all classes of unknown words."""
        return tuple(index for index, token in enumerate(self.tokens) if is_unknown(token))

    @property
    def has_classes(self) -> bool:
        """Whether unknown words are told apart."""
        return len(self.unknown_ids) > 1

    @cached_property
    def end(self) -> int:
        """Id of `</s>`."""
        return self._ids[END]

    @cached_property
    def start(self) -> int:
        """Id of what precedes a sentence: `<s>`, or `</s>` for a model that reads one sentence after the other."""
        return self._ids.get(START, self.end)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the tokens in their order."""
        return hashlib.sha256(json.dumps(self.tokens).encode()).hexdigest()

    def save(self, path: Path) -> None:
        """Write vocabulary.json, one token a line.

        Args:
            path: The file, which is replaced in one step.

        """
        text = json.dumps({"tokens": self.tokens}, ensure_ascii=False, indent=0) + "\n"
        with replacing(path) as file:
            file.write(text.encode())

    @staticmethod
    def load(path: Path) -> Vocabulary:
        """Read vocabulary.json.

        Args:
            path: The file.

        Raises:
            InputError: It cannot be read, or is no vocabulary.

        """
        remedy = "take the vocabulary.json that was saved with the model"
        content = read_json(path, remedy)
        tokens = content.get("tokens") if isinstance(content, dict) else None
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise InputError(str(path), 'not a vocabulary: expected {"tokens": [words …]}', remedy)
        try:
            return Vocabulary(tuple(tokens))
        except ConfigError as error:
            raise InputError(str(path), str(error), remedy) from None

    def _class(self, token: str) -> int:
        return next((self._ids[each] for each in classes_of(token) if each in self._ids), self.unknown)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: index for index, token in enumerate(self.tokens)}
