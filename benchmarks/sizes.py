"""The sizes at which contenders meet, and how many multiply-adds a token costs at each.

Forward, per token, with E embedding, H hidden, I inputs of a layer (E, then H), N slots, L look-back, V vocabulary,
W = 2H the width of the predict network (H without its attention):

    convolution   H E (L + 1)
    heads         H                   2H where both read all channels (the paper's flavour)
    layer         4H (I + H)          gates
                + H (I + H)           key
                + 3 N H               scores, and the sums of hidden and of cell states
    predict       H² + 2 N H          key, scores and sum
                + 2 W²                each residual block
                + W E                 output
    decoder       E V

    torch.nn.LSTM: 4H (I + H) a layer, H E, E V

The backward pass takes every product twice, once for each factor's gradient: a training step costs three times as much.
Normalisations, activations and the softmax are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from prpn.config import ModelConfig


@dataclass(frozen=True)
class Size:
    """A model and the chunk of text it learns from in one step."""

    config: ModelConfig
    vocabulary: int
    batch: int
    steps: int

    @property
    def tokens(self) -> int:
        """Tokens of a training step."""
        return self.batch * self.steps

    @property
    def multiply_adds(self) -> int:
        """Of PRPN, forward, per token."""
        config, hidden = self.config, self.config.hidden
        attention = config.memory_slots * hidden
        count = config.embedding * self.vocabulary
        if config.parsing:
            count += hidden * config.embedding * (config.lookback + 1) + 2 * hidden // config.head_groups
        for inputs in self._layer_inputs:
            count += 4 * hidden * (inputs + hidden)
            if config.reading_attention:
                count += hidden * (inputs + hidden) + 3 * attention
        if config.predict_attention:
            count += hidden**2 + 2 * attention
        width = 2 * hidden if config.predict_attention else hidden
        return count + config.residual_blocks * 2 * width**2 + width * config.embedding

    @property
    def lstm_multiply_adds(self) -> int:
        """Of torch.nn.LSTM with the same output, forward, per token."""
        config, hidden = self.config, self.config.hidden
        layers = sum(4 * hidden * (inputs + hidden) for inputs in self._layer_inputs)
        return layers + hidden * config.embedding + config.embedding * self.vocabulary

    @property
    def largest_products(self) -> dict[str, tuple[int, int, int]]:
        """Rows, inner size and columns of the products that take most of the work."""
        hidden = self.config.hidden
        return {
            "gates of a chunk": (self.tokens, hidden, 4 * hidden),
            "gates of a step": (self.batch, hidden, 4 * hidden),
            "decoder": (self.tokens, self.config.embedding, self.vocabulary),
        }

    @property
    def _layer_inputs(self) -> list[int]:
        return [self.config.embedding] + [self.config.hidden] * (self.config.layers - 1)


SIZES = {
    "parsing": Size(ModelConfig(embedding=200, hidden=400), 10_000, 64, 25),
    "ptb-word": Size(ModelConfig(embedding=800, hidden=1200), 10_000, 64, 35),
    "ptb-char": Size(
        ModelConfig(embedding=128, hidden=1024, tied=False, residual_blocks=1, lookback=10, memory_slots=20),
        vocabulary=50,
        batch=64,
        steps=100,
    ),
    "tiny": Size(ModelConfig(embedding=8, hidden=16, memory_slots=4, lookback=2), 50, 4, 6),  # to see that all runs
}
FULL_SIZES = ("parsing", "ptb-word", "ptb-char")
