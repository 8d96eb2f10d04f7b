"""Minimal pairs: which of two sentences that differ in one respect does a model find more probable?

    surprisal(s) = Σ_t −log₂ p(w_t | w_1 … w_{t−1}),    w_1 … w_n the tokens of the line and the `</s>` that closes it

Every line is read by itself, from the empty state after a sentence end, whatever the model was trained on; so a pair
is judged alike wherever it stands. What a line costs depends on its length too: pairs should have equally many tokens.
Lines that are the same to the model, because they differ in words that it does not know, are a tie.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from prpn.errors import InputError
from prpn.model import PRPN
from prpn.model.layers import place_rows
from prpn.text.batches import sentence_batch
from prpn.text.files import LineError, place_of, read_lines, refuse_standard_input_twice
from prpn.text.tokenizer import Tokenizer
from prpn.text.vocabulary import END, Vocabulary
from prpn.training.evaluate import readings

_PAIRS_AT_ONCE = 32


@dataclass(frozen=True)
class Pair:
    """The surprisal, in bits, of the same line of two files, and how many words of each the model does not know."""

    line: int
    first: float
    second: float
    unknown: tuple[int, int]

    @property
    def lower(self) -> str:
        """Which line is more probable."""
        return "tie" if self.first == self.second else "first" if self.first < self.second else "second"

    def to_json(self) -> dict[str, Any]:
        """The pair by the names that scripts read."""
        return {**asdict(self), "lower": self.lower}


@dataclass(frozen=True)
class Comparison:
    """What the pairs of two files come to."""

    pairs: int
    first: int
    second: int
    ties: int
    mean_difference: float
    """Bits of the second line less those of the first, on average: positive where the first is more probable."""
    with_unknown: int

    @property
    def share(self) -> float:
        """Of the pairs, those in which the first line is more probable."""
        return self.first / self.pairs

    def to_json(self) -> dict[str, Any]:
        """The comparison by the names that scripts read."""
        return {**asdict(self), "share": self.share}


def read_sides(paths: Sequence[str], tokenizer: Tokenizer) -> list[list[list[str]]]:
    """The tokens of every line of two files, each line closed; refuses files that are not line by line a pair."""
    refuse_standard_input_twice(paths)
    first, second = sides = [[_sentence(path, *line, tokenizer) for line in read_lines(path)] for path in paths]
    if len(first) != len(second):
        cause = f"{len(first):,} lines, but {place_of(paths[1])} has {len(second):,}"
        raise InputError(place_of(paths[0]), cause, "a pair is the same line of both")
    if not first:
        raise InputError(place_of(paths[0]), "the input is empty", "give one sentence a line")
    return sides


def compare(network: PRPN, vocabulary: Vocabulary, sides: Sequence[Sequence[Sequence[str]]]) -> Iterator[Pair]:
    """Score line against line, in order."""
    first, second = ([vocabulary.encode(tokens) for tokens in side] for side in sides)
    for begin in range(0, len(first), _PAIRS_AT_ONCE):
        some, others = (side[begin : begin + _PAIRS_AT_ONCE] for side in (first, second))
        bits = sentence_bits(network, vocabulary, [*some, *others])
        for place, (one, other) in enumerate(zip(some, others, strict=True)):
            cost = bits[place]
            other_cost = cost if one == other else bits[len(some) + place]  # a tie, also in the last digit
            unknown, unknown_of_other = (sum(map(side.count, vocabulary.unknown_ids)) for side in (one, other))
            yield Pair(begin + place + 1, cost, other_cost, (unknown, unknown_of_other))


def comparison_of(pairs: Sequence[Pair]) -> Comparison:
    """Count and average."""
    lower = [pair.lower for pair in pairs]
    return Comparison(
        pairs=len(pairs),
        first=lower.count("first"),
        second=lower.count("second"),
        ties=lower.count("tie"),
        mean_difference=math.fsum(pair.second - pair.first for pair in pairs) / len(pairs),
        with_unknown=sum(any(pair.unknown) for pair in pairs),
    )


def sentence_bits(network: PRPN, vocabulary: Vocabulary, sentences: Sequence[Sequence[int]]) -> list[float]:
    """The surprisal of each sentence, given as the numbers of its tokens, by itself."""
    lengths = np.array([len(sentence) for sentence in sentences])
    ids = np.concatenate([np.asarray(sentence, dtype=np.int64) for sentence in sentences])
    batch = sentence_batch(ids, lengths.cumsum() - lengths, lengths, vocabulary.start, vocabulary.end)
    (reading,) = readings(network, [batch], network.decoder.bias.device)
    mask = None if batch.mask is None else torch.from_numpy(batch.mask)
    nats = place_rows(reading.losses.cpu().double(), mask, len(sentences)).sum(0)  # (B,)
    return (nats / math.log(2)).tolist()


def _sentence(path: str, number: int, line: str | LineError, tokenizer: Tokenizer) -> list[str]:
    if isinstance(line, LineError):
        raise line
    tokens = tokenizer.tokens(line)
    if not tokens:
        raise InputError(f"{place_of(path)}:{number}", "no token in this line", "give one sentence a line")
    return [*tokens, END] if tokenizer.config.line_ends and tokens[-1] != END else tokens
