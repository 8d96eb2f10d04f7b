"""Text drawn from a model, token by token, the state carried from each to the next.

    w_t ~ softmax(ln p(· | w_1 … w_{t−1}) / T)    over the k most probable tokens; T = 0: the most probable one

Reading begins after a sentence end, as in training. `<unk>` is no word anyone would write: it is not drawn unless asked
for, and the others share its probability; `<s>` is never drawn, since no text has it. A model that was trained sentence
by sentence starts afresh after each `</s>`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from prpn.errors import ConfigError
from prpn.model import PRPN
from prpn.text.lines import closed_lines, pieces_of
from prpn.text.tokenizer import SPACE, Tokenizer
from prpn.text.vocabulary import END, START, Vocabulary
from prpn.training.evaluate import require_numbers


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen; the same seed draws the same tokens."""

    seed: int = 0
    temperature: float = 1.0
    top_k: int | None = None
    """Choose among so many of the most probable tokens; none: among all."""
    unknown: bool = False
    """Whether `<unk>` may be drawn."""

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"a seed of {self.seed}: give 0 or more, below 2 to the 63")
        if not 0 <= self.temperature < math.inf:
            raise ConfigError(f"a temperature of {self.temperature:g}: give 0 (always the most probable token) or more")
        if self.top_k is not None and self.top_k < 1:
            raise ConfigError(f"the {self.top_k} most probable tokens: give 1 or more")


def generate(
    network: PRPN,
    vocabulary: Vocabulary,
    prompt: Sequence[str],
    sampling: Sampling,
    *,
    by_sentence: bool = False,
) -> Iterator[str]:
    """Go on after a prompt without end; `by_sentence` starts afresh after each `</s>`."""
    device, forbidden = network.decoder.bias.device, _forbidden(vocabulary, sampling)
    random = torch.Generator().manual_seed(sampling.seed)
    afresh = [vocabulary.start]
    if by_sentence and END in prompt:
        prompt = prompt[len(prompt) - [*reversed(prompt)].index(END) :]
    state, unread = None, [*afresh, *vocabulary.encode(prompt)]
    while True:
        with torch.no_grad():
            output = network(torch.tensor(unread, device=device)[:, None], state)
            logits = network.decoder(output.features[-1:])[0].cpu().double()  # (V,)
        require_numbers(logits)
        drawn = draw(logits.index_fill(0, forbidden, -torch.inf), sampling, random)
        yield vocabulary.tokens[drawn]
        starts_afresh = by_sentence and drawn == vocabulary.end
        state, unread = (None, afresh) if starts_afresh else (output.state, [drawn])


def prompt_tokens(text: str, tokenizer: Tokenizer) -> list[str]:
    """The tokens of a text that goes on: its last line is not closed unless a line end stands there."""
    tokens = [token for line in closed_lines([pieces_of(text)], tokenizer) for token in line]
    config, last = tokenizer.config, tokenizer.tokens(text.rpartition("\n")[2])
    was_closed = config.line_ends and last[-1:] != [END] and (bool(last) or config.blank_lines)
    if was_closed and not text.endswith("\n"):
        tokens.pop()
    if tokenizer.by_character and text[-1:].isspace() and tokens[-1:] not in ([], [END]):
        tokens.append(SPACE)  # which the end of a line is stripped of
    return tokens


def written(tokens: Iterable[str], tokenizer: Tokenizer, before: str = "") -> Iterator[str]:
    """Tokens as text, one by one, to be put after `before`: words with spaces between, `</s>` as the end of a line."""
    at_start = not before or before[-1].isspace()
    for token in tokens:
        if token == END:
            yield "\n"
        elif tokenizer.by_character:
            yield " " if token == SPACE else token
        else:
            yield token if at_start else f" {token}"
        at_start = token == END


def draw(logits: Tensor, sampling: Sampling, random: torch.Generator) -> int:
    """A token number by its score (V,); of equally probable tokens the one with the lower number comes first."""
    scores, tokens = logits.sort(descending=True, stable=True)
    kept = 1 if sampling.temperature == 0 else sampling.top_k or len(tokens)
    if kept == 1:
        return int(tokens[0])
    probabilities = ((scores[:kept] - scores[0]) / sampling.temperature).softmax(0)
    return int(tokens[torch.multinomial(probabilities, 1, generator=random)])


def _forbidden(vocabulary: Vocabulary, sampling: Sampling) -> Tensor:
    start = vocabulary.encode([START] if START in vocabulary else [])
    return torch.tensor([*start, *(() if sampling.unknown else vocabulary.unknown_ids)], dtype=torch.long)
