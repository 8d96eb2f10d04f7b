"""Perplexity with a cache, and the cache that is saved with a model: `cache.json` in the model folder.

Size, theta and lambda are tuned on validation text, once; every other text is then measured with what was saved.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prpn.config import TrainingConfig
from prpn.errors import ConfigError, InputError
from prpn.language.cache_pointer import CachePointer, tune
from prpn.model import PRPN
from prpn.models.files import CACHE, read_json
from prpn.text.atomic import replacing
from prpn.text.corpus import Corpus
from prpn.text.vocabulary import Vocabulary
from prpn.training.data import evaluation_batches
from prpn.training.evaluate import CHUNK, LanguageScore, Reading, readings


@dataclass(frozen=True)
class TunedCache:
    """The cache that suits a text best, and how well that text is predicted without and with it."""

    cache: CachePointer
    alone: LanguageScore
    together: LanguageScore


Progress = Callable[[int], object]
"""Is told how many more tokens have been read."""


def score_with_cache(
    network: PRPN,
    corpus: Corpus,
    vocabulary: Vocabulary,
    config: TrainingConfig,
    cache: CachePointer,
    progress: Progress | None = None,
) -> tuple[LanguageScore, LanguageScore]:
    """Score a corpus as one stream: by the model alone, and by model and cache together."""
    alone = together = 0.0
    for by_model, by_both in cache.mixed(_stream(network, corpus, vocabulary, config, progress)):
        alone -= by_model.sum()
        together -= by_both.sum()
    score = LanguageScore(float(alone), len(corpus.ids), corpus.unknown, corpus.characters)
    return score, replace(score, nats=float(together))


def tune_on(
    network: PRPN, corpus: Corpus, vocabulary: Vocabulary, config: TrainingConfig, progress: Progress | None = None
) -> TunedCache:
    """The cache that suits this (validation) text best."""
    found = tune(_stream(network, corpus, vocabulary, config, progress))
    alone, together = (
        LanguageScore(loss * len(corpus.ids), len(corpus.ids), corpus.unknown, corpus.characters)
        for loss in (found.loss_alone, found.loss)
    )
    return TunedCache(found.cache, alone, together)


def save_cache(folder: Path, tuned: TunedCache, corpus: Corpus) -> None:
    """Write cache.json: the cache, what it was tuned on, and what it brought there."""
    values = {
        **cache_json(tuned.cache),
        "tuned_on": {"sha256": corpus.checksum, "tokens": len(corpus.ids)},
        "perplexity": tuned.together.perplexity,
        "perplexity_without_cache": tuned.alone.perplexity,
    }
    try:
        with replacing(folder / CACHE) as file:
            file.write((json.dumps(values, indent=1) + "\n").encode())
    except OSError as error:
        remedy = "copy the model to a folder of your own"
        raise InputError(str(folder / CACHE), f"cannot be written ({error.strerror})", remedy) from None


def load_cache(folder: Path) -> CachePointer:
    """Read cache.json."""
    remedy = f"tune one on validation text: prpn perplexity VALID --model {folder} --cache --tune"
    if not (folder / CACHE).exists():
        raise InputError(str(folder), "has no cache yet", remedy)
    try:
        values = read_json(folder / CACHE, remedy)
        size, theta, weight = (values[name] for name in ("size", "theta", "lambda"))
        if type(size) is not int or {type(theta), type(weight)} - {int, float}:
            raise TypeError
        return CachePointer(size, float(theta), float(weight))
    except InputError as error:
        cause = f"not a cache with size, theta and lambda ({error.cause})"
        raise InputError(str(folder / CACHE), cause, remedy) from None
    except (ValueError, KeyError, TypeError, OverflowError):
        raise InputError(str(folder / CACHE), "not a cache with size, theta and lambda", remedy) from None


def cache_json(cache: CachePointer) -> dict[str, Any]:
    """The cache by the names that scripts read."""
    return {"size": cache.size, "theta": cache.theta, "lambda": cache.weight}


def require_running_text(config: TrainingConfig) -> None:
    """Refuse a model that was trained sentence by sentence: it has no text before a sentence to remember."""
    if config.batching == "sentences":
        raise ConfigError(
            "a cache remembers the text before a sentence, and this model reads every sentence by itself "
            "(training.batching = sentences); leave out --cache"
        )


def _stream(
    network: PRPN, corpus: Corpus, vocabulary: Vocabulary, config: TrainingConfig, progress: Progress | None
) -> Iterator[Reading]:
    require_running_text(config)
    batches = evaluation_batches(config, vocabulary, corpus.ids, 1, CHUNK)
    for reading in readings(network, batches, network.decoder.bias.device):
        yield reading
        if progress is not None:
            progress(len(reading.tokens))
