"""Perplexity and bits per character: every token counted once, the state carried from the first to the last.

    perplexity = exp(nats / tokens),    bits per character = nats / (characters · ln 2)

Reported figures read the text as one stream. While training, the text is cut into several columns read side by side,
each of which starts without context: faster, slightly pessimistic, and always called an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from prpn.config import TrainingConfig
from prpn.errors import InputError
from prpn.model import PRPN
from prpn.model.layers import select_rows
from prpn.text.batches import Batch
from prpn.text.corpus import Corpus
from prpn.text.vocabulary import Vocabulary
from prpn.training.data import evaluation_batches

CHUNK = 128
"""Tokens read at once; any other number gives the same result."""
ESTIMATE_COLUMNS = 16
"""Columns read side by side for an estimate."""


@dataclass(frozen=True)
class LanguageScore:
    """How well a text was predicted."""

    nats: float
    tokens: int
    unknown: int
    characters: int

    @property
    def loss(self) -> float:
        """Nats a token."""
        return self.nats / self.tokens

    @property
    def perplexity(self) -> float:
        """How many equally likely tokens the model was in doubt between, on average."""
        return perplexity_of(self.loss)

    @property
    def bits_per_character(self) -> float:
        """Bits needed for a character of the tokenised text, spaces and line ends included."""
        return self.nats / (max(1, self.characters) * math.log(2))


def perplexity_of(loss: float) -> float:
    """exp(loss), kept within what a float can hold."""
    return math.exp(min(loss, 700.0))


def on_device(batch: Batch, device: torch.device) -> tuple[Tensor, Tensor, Tensor | None]:
    """Inputs, targets and mask as tensors."""
    mask = None if batch.mask is None else torch.from_numpy(batch.mask).to(device)
    return torch.from_numpy(batch.inputs).to(device), torch.from_numpy(batch.targets).to(device), mask


@dataclass(frozen=True)
class Reading:
    """What a batch came to: at every counted token, in reading order, what it was predicted from and how badly."""

    features: Tensor  # (R, E)
    tokens: Tensor  # (R,)
    losses: Tensor  # (R,), in nats


@torch.no_grad()
def readings(
    network: PRPN, batches: Iterable[Batch], device: torch.device, *, diverging: bool = False
) -> Iterator[Reading]:
    """Read batch after batch, carrying the state; a loss that is not a number is an error unless one is `diverging`."""
    network.eval()
    state = None
    for batch in batches:
        inputs, targets, mask = on_device(batch, device)
        output = network(inputs, None if batch.fresh else state, mask)
        state = output.state
        losses = network.token_losses(output, targets, mask)
        if not diverging:
            require_numbers(losses)
        yield Reading(output.features, select_rows(targets, mask), losses)


def require_numbers(predicted: Tensor) -> None:
    """Refuse what a network says whose weights are too large: it is no prediction."""
    if not bool(torch.isfinite(predicted).all()):
        raise InputError("the model", "predicts what is not a number", "its weights are too large: did it diverge?")


def token_losses(
    network: PRPN, batches: Iterable[Batch], device: torch.device, *, diverging: bool = False
) -> Iterator[Tensor]:
    """Nats of each counted token, a tensor a batch, in reading order."""
    return (reading.losses for reading in readings(network, batches, device, diverging=diverging))


def score(
    network: PRPN,
    corpus: Corpus,
    vocabulary: Vocabulary,
    config: TrainingConfig,
    *,
    columns: int = 1,
    progress: Callable[[int], object] | None = None,
    diverging: bool = False,
) -> LanguageScore:
    """Score a corpus as one stream, or in several columns for an estimate; a sentence model always by sentences."""
    was_training, device = network.training, network.decoder.bias.device
    batches = evaluation_batches(config, vocabulary, corpus.ids, columns, CHUNK)
    nats, tokens = 0.0, 0
    for losses in token_losses(network, batches, device, diverging=diverging):
        nats += losses.cpu().double().sum().item()
        tokens += len(losses)
        if progress is not None:
            progress(len(losses))
    network.train(was_training)
    return LanguageScore(nats, tokens, corpus.unknown, corpus.characters)
