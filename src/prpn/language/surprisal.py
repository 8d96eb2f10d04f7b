"""Surprisal: how many bits each token of a text tells a model that has read all before it.

    surprisal(w_t) = −log₂ p(w_t | w_1 … w_{t−1})

The text is read as for perplexity: as one stream that begins after a sentence end, or sentence by sentence if the
model was trained so. It is read once and bit by bit, so that a pipe is answered as it comes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice, tee
from typing import NamedTuple

import numpy as np

from prpn.config import TrainingConfig
from prpn.language.cache_pointer import CachePointer
from prpn.language.cached_score import require_running_text
from prpn.language.mixture import Floats
from prpn.model import PRPN
from prpn.text.batches import Batch
from prpn.text.lines import token_lengths
from prpn.text.vocabulary import END, Vocabulary, is_unknown
from prpn.training.evaluate import CHUNK, LanguageScore, Reading, readings


class ScoredToken(NamedTuple):
    """A token of a text with its surprisal."""

    line: int
    token: str
    """As the model's tokenizer writes it; the last of a line is `</s>`."""
    bits: float
    scored_as: str
    """The token itself; `<unk>` or a class of it where the model does not know it."""
    bits_without_cache: float
    """The same as `bits` unless a cache was used."""


def scored_tokens(
    network: PRPN,
    vocabulary: Vocabulary,
    config: TrainingConfig,
    lines: Iterable[tuple[int, list[str]]],
    cache: CachePointer | None = None,
) -> Iterator[ScoredToken]:
    """Score the tokens of numbered lines, as `numbered_lines` gives them, in order and in bounded memory."""
    places = ((line, token) for line, tokens in lines for token in tokens)
    by_sentence = config.batching == "sentences"
    if cache is not None:
        require_running_text(config)
    shown, read = tee(_sentences(places) if by_sentence else _chunks(places))
    batches = _batches(([token for _, token in chunk] for chunk in read), vocabulary, by_sentence)
    blocks = readings(network, batches, network.decoder.bias.device)
    for chunk, (alone, together) in zip(shown, _alone(blocks) if cache is None else cache.mixed(blocks), strict=True):
        for (line, token), without, bits in zip(chunk, _bits(alone), _bits(together), strict=True):
            (scored_as,) = vocabulary.decode(vocabulary.encode([token]))
            yield ScoredToken(line, token, bits, scored_as, without)


def summary(scored: Iterable[ScoredToken], by_character: bool) -> tuple[LanguageScore, LanguageScore]:
    """What the tokens of a text come to, without and with the cache."""
    tokens = list(scored)
    unknown = sum(is_unknown(each.scored_as) for each in tokens)
    characters = int(token_lengths([each.token for each in tokens], by_character).sum())
    alone, together = (
        LanguageScore(math.fsum(bits) * math.log(2), len(tokens), unknown, characters)
        for bits in ([each.bits_without_cache for each in tokens], [each.bits for each in tokens])
    )
    return alone, together


def _chunks(places: Iterator[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    while chunk := list(islice(places, CHUNK)):
        yield chunk


def _sentences(places: Iterator[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    sentence: list[tuple[int, str]] = []
    for place in places:
        sentence.append(place)
        if place[1] == END:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def _batches(chunks: Iterable[list[str]], vocabulary: Vocabulary, by_sentence: bool) -> Iterator[Batch]:
    before, fresh = vocabulary.start, True
    for chunk in chunks:
        ids = vocabulary.encode(chunk)
        inputs, targets = np.array([before, *ids[:-1]])[:, None], np.array(ids)[:, None]
        yield Batch(inputs, targets, None, fresh)
        if not by_sentence:
            before, fresh = ids[-1], False


def _alone(blocks: Iterable[Reading]) -> Iterator[tuple[Floats, Floats]]:
    for block in blocks:
        log_probabilities = -block.losses.cpu().double().numpy()
        yield log_probabilities, log_probabilities


def _bits(log_probabilities: Floats) -> list[float]:
    return (log_probabilities / -math.log(2)).tolist()
