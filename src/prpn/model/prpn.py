"""PRPN: a parsing network that finds structure, a reading network that follows it, a predict network that uses it.

distances, gates = parsing(e);   h = reading(e, gates);   p(x_{t+1}) = softmax(decoder(predict(h, next gates)))

# T time, B batch, V vocabulary, E embedding, H hidden, N memory slots, R real positions
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prpn import kernels
from prpn.config import ModelConfig
from prpn.errors import ConfigError
from prpn.kernels.autocast import heeding_autocast
from prpn.kernels.loss import chunked_cross_entropy, token_cross_entropies
from prpn.model.attention import reach_distribution
from prpn.model.layers import dropout_of_rows, place_rows, select_rows
from prpn.model.parsing import Parse, ParsingNetwork, PlainGates
from prpn.model.predict import PredictNetwork
from prpn.model.reading import ReadingLayer
from prpn.model.state import State


@dataclass(frozen=True)
class Output:
    """What a chunk of text went through on its way to the features that predict the next tokens."""

    hidden: Tensor  # (T, B, H) of the last layer
    features: Tensor  # (R, E) input of the decoder at the real positions
    parse: Parse
    reading_attention: list[Tensor]  # one (T, B, N) a layer; empty without reading attention
    predict_attention: Tensor | None  # (T, B, N)
    state: State

    @property
    def reach(self) -> Tensor:
        """p(l_t = i) over the N slots and t itself (T, B, N + 1)."""
        return reach_distribution(self.parse.reading_gates)


class PRPN(nn.Module):
    """The Parsing-Reading-Predict Network over a vocabulary of token numbers."""

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        """Make a network with random weights, from PyTorch's generator.

        Args:
            config: Its sizes and whose equations hold.
            vocabulary_size: How many tokens there are, numbered from 0.

        """
        super().__init__()
        if vocabulary_size < 1:
            raise ConfigError("the vocabulary is empty: give text, or lower text.minimum_count")
        self.config = config
        self.embedding = nn.Embedding(vocabulary_size, config.embedding)
        self.parsing = ParsingNetwork(config) if config.parsing else PlainGates()
        self.reading = nn.ModuleList(ReadingLayer(config, first=layer == 0) for layer in range(config.layers))
        self.predict = PredictNetwork(config)
        self.decoder = nn.Linear(config.embedding, vocabulary_size)
        for table in (self.embedding, self.decoder):
            nn.init.uniform_(table.weight, -0.01, 0.01)
        nn.init.zeros_(self.decoder.bias)
        if config.tied:
            self.decoder.weight = self.embedding.weight

    def forward(self, tokens: Tensor, state: State | None = None, mask: Tensor | None = None) -> Output:
        """Read a chunk of text.

        Args:
            tokens: Their numbers (T, B).
            state: What the chunk before left; without it the text begins here.
            mask: Which of them are real (T, B); padding stands on the right. All of them unless given.

        """
        embeddings = self.embedding(tokens)  # (T, B, E)
        state = state or State.zero(self.config, tokens.shape[1], embeddings)
        parse = self.parsing(embeddings, state.embeddings, state.distances, mask)
        inputs, tapes = embeddings, []
        for layer, past_hidden, past_cells in zip(self.reading, state.hidden, state.cells, strict=True):
            tapes.append(layer(inputs, parse.reading_gates, past_hidden, past_cells))
            inputs = tapes[-1].now  # (T, B, H)
        features, predict_attention = self.predict(tapes[-1], parse.predict_gates, mask)
        slots, steps = self.config.memory_slots, len(tokens)
        after = State(
            embeddings=parse.embedding_tape[steps:],
            distances=parse.distance_tape[steps:],
            hidden=tuple(tape.hidden[-slots:] for tape in tapes),
            cells=tuple(tape.cells[-slots:] for tape in tapes),
        )
        attention = [tape.attention for tape in tapes if tape.attention is not None]
        return Output(inputs, features, parse, attention, predict_attention, after)

    @heeding_autocast
    def logits(self, output: Output, mask: Tensor | None = None) -> Tensor:
        """Scores of every next token (T, B, V); zero at padding.

        Args:
            output: What the network gave for a chunk.
            mask: The mask that it was given.

        """
        return place_rows(self.decoder(self.drop(output, mask)), mask, output.state.batch)

    @heeding_autocast
    def loss(self, output: Output, targets: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mean cross-entropy, in nats a token, of the targets at the real positions.

        Args:
            output: What the network gave for a chunk.
            targets: The next tokens (T, B); one of -100 does not count, as in PyTorch.
            mask: The mask that the network was given.

        Raises:
            IndexError: A target is no token.

        """
        features, wanted = self.drop(output, mask), select_rows(targets, mask)
        if kernels.in_use() == "autograd":
            return F.cross_entropy(self.decoder(features), wanted)
        return chunked_cross_entropy(features, self.decoder.weight, self.decoder.bias, wanted)

    @torch.no_grad()
    @heeding_autocast
    def token_losses(self, output: Output, targets: Tensor, mask: Tensor | None = None) -> Tensor:
        """Cross-entropy, in nats, of each target at the real positions (R,), in reading order.

        Args:
            output: What the network gave for a chunk.
            targets: The next tokens (T, B); the loss of a target of -100 is 0.
            mask: The mask that the network was given.

        """
        features, wanted = self.drop(output, mask), select_rows(targets, mask)
        if kernels.in_use() == "autograd":
            return F.cross_entropy(self.decoder(features), wanted, reduction="none")
        return token_cross_entropies(features, self.decoder.weight, self.decoder.bias, wanted)

    def drop(self, output: Output, mask: Tensor | None = None) -> Tensor:
        """What the decoder reads (R, E), after the in-out dropout.

        Args:
            output: What the network gave for a chunk.
            mask: The mask that it was given.

        """
        config, batch, features = self.config, output.state.batch, output.features.to(self.decoder.weight.dtype)
        return dropout_of_rows(
            features, mask, batch, config.dropout_in_out, self.training, config.dropout_locked
        )  # fmt: skip
