"""The first arrow: files to vocabulary and encoded corpora, ready to be cut into batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from prpn.config import Recipe, TrainingConfig
from prpn.errors import ConfigError, InputError
from prpn.text.batches import SentenceBatches, StreamBatches
from prpn.text.cache import default_cache, is_read_once, rereadable
from prpn.text.corpus import Corpus, Progress, count_tokens, encode
from prpn.text.files import read_blocks, refuse_standard_input_twice
from prpn.text.tokenizer import Tokenizer
from prpn.text.vocabulary import Vocabulary

Batches = StreamBatches | SentenceBatches


@dataclass(frozen=True)
class Data:
    """What a run learns from and is judged by."""

    vocabulary: Vocabulary
    training: Corpus
    validation: Corpus


def prepare(
    recipe: Recipe,
    texts: Sequence[str],
    validation: str | None,
    *,
    tokenized: bool = False,
    vocabulary: Vocabulary | None = None,
    progress: Progress | None = None,
) -> Data:
    """Count, build the vocabulary unless one is given, encode; hold a part out when there is no validation file."""
    config, cache = recipe.text, default_cache()
    if not texts and not config.corpus:
        raise ConfigError("no text to train on; give --text FILE (one sentence a line)")
    paths: Sequence[str | Path] = list(texts) or [embedded_corpus(config.corpus)]
    tokenizer = Tokenizer(config, tokenized)
    refuse_standard_input_twice([*paths, *([] if validation is None else [validation])])
    if validation is not None and not is_read_once(validation):
        next(read_blocks(validation), None)  # a missing file is better noticed before the long one is read
    with rereadable(paths, cache) as files:
        if vocabulary is None:
            vocabulary = Vocabulary.build(
                count_tokens(files, tokenizer, progress).counts,
                config.minimum_count,
                config.maximum_size,
                with_start=recipe.training.batching == "sentences",
                unknown_classes=config.unknown_classes,
            )
        corpus = encode(files, tokenizer, vocabulary, cache, progress)
    if validation is None:
        return Data(vocabulary, *corpus.split(config.held_out, vocabulary))
    return Data(vocabulary, corpus, encode([validation], tokenizer, vocabulary, cache, progress))


def embedded_corpus(name: str, suffix: str = "txt") -> Path:
    """The text, or the `trees`, of a corpus that comes with the package."""
    path = Path(str(resources.files("prpn") / "corpora" / name / f"{name}.{suffix}"))
    if not path.is_file():
        raise InputError(name, "no such embedded corpus", "give --text FILE")
    return path


def training_batches(config: TrainingConfig, data: Data, epoch: int) -> Batches:
    """The batches of an epoch: a function of seed and epoch alone, so that a run can go on in the middle of one."""
    ids, vocabulary = data.training.ids, data.vocabulary
    if config.batching == "sentences":
        return SentenceBatches(
            ids,
            config.batch_size,
            start_token=vocabulary.start,
            end_token=vocabulary.end,
            seed=config.seed,
            epoch=epoch,
        )
    random = np.random.default_rng([config.seed, epoch])
    offset = int(random.integers(len(ids))) if config.random_offset else 0
    return StreamBatches(
        ids,
        config.batch_size,
        config.bptt,
        start_token=vocabulary.start,
        offset=offset,
        jitter=config.bptt_jitter,
        random=random,
    )


def evaluation_batches(config: TrainingConfig, vocabulary: Vocabulary, ids: Any, columns: int, length: int) -> Batches:
    """Batches in which every token counts exactly once: one stream (`columns` = 1) or a batched estimate."""
    if config.batching == "sentences":
        return SentenceBatches(
            ids, columns, start_token=vocabulary.start, end_token=vocabulary.end, shuffle=False
        )  # fmt: skip
    return StreamBatches(ids, columns, length, start_token=vocabulary.start, once=True)
