"""The step-by-step formulation: what the released PRPN computes, in the order in which it computes it.

    parsing network and all gates of the chunk
    for each time step:  reading layer 1, …, reading layer n, attention of the predict network; the memories move on
    output layers, all logits, cross-entropy

Within a time step everything is a tensor operation, and PyTorch's autograd finds the gradient. A memory is one tensor
that loses its oldest state and takes in the newest at each step. There is no dropout here.

    # T time, B batch, E embedding, H hidden, N memory slots, L look-back, V vocabulary; oldest slot first
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from prpn.config import ModelConfig
from prpn.model import PRPN

Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class Memory:
    """What one chunk hands to the next."""

    embeddings: Tensor  # (B, E, L)
    distances: Tensor  # (B, N), +∞ before the start
    hidden: list[Tensor]  # (B, N, H) a layer
    cells: list[Tensor]  # (B, N, H) a layer

    @staticmethod
    def empty(config: ModelConfig, batch: int, like: Tensor) -> Memory:
        """Before the first token."""
        states = [like.new_zeros(batch, config.memory_slots, config.hidden)] * config.layers
        return Memory(
            embeddings=like.new_zeros(batch, config.embedding, config.lookback),
            distances=like.new_full((batch, config.memory_slots), math.inf),
            hidden=list(states),
            cells=list(states),
        )

    def detach(self) -> Memory:
        """The same values, cut off from the graph that made them."""
        return Memory(
            self.embeddings.detach(),
            self.distances.detach(),
            [hidden.detach() for hidden in self.hidden],
            [cells.detach() for cells in self.cells],
        )


def weights_of(network: PRPN) -> dict[str, Tensor]:
    """Copies of a network's weights and statistics by name, ready to be trained."""
    weights = {name: parameter.detach().clone().requires_grad_() for name, parameter in network.named_parameters()}
    return {**weights, **{name: buffer.clone() for name, buffer in network.named_buffers()}}


def run(
    config: ModelConfig, weights: Weights, tokens: Tensor, memory: Memory | None = None, *, training: bool = True
) -> tuple[Tensor, Memory]:
    """Logits (T·B, V) of tokens (T, B) and the memory after them; training moves the running statistics in place."""
    embeddings = F.embedding(tokens, weights["embedding.weight"])  # (T, B, E)
    memory = memory or Memory.empty(config, tokens.shape[1], embeddings)
    window = torch.cat([memory.embeddings, embeddings.permute(1, 2, 0)], 2)  # (B, E, L + T)
    reading_gates, predict_gates, distances = _gates(config, weights, window, memory.distances, training)
    hidden, cells = list(memory.hidden), list(memory.cells)
    features = []
    for t, token in enumerate(embeddings):
        x = token  # (B, E)
        for layer in range(config.layers):
            past = hidden[layer]
            x, cell = _read(config, weights, layer, x, past, cells[layer], reading_gates[:, t])  # (B, H) each
            hidden[layer] = torch.cat([past[:, 1:], x[:, None]], 1)  # (B, N, H)
            cells[layer] = torch.cat([cells[layer][:, 1:], cell[:, None]], 1)
        if config.predict_attention:
            attention = _attention(_linear(weights, "predict.key", x), past, predict_gates[:, t])
            x = torch.cat([x, _summary(attention, past)], 1)  # (B, 2H)
        features.append(x)
    logits = _output(config, weights, torch.cat(features), training)
    left = window.shape[2] - config.lookback
    return logits, Memory(window[:, :, left:], distances[:, len(tokens) :], hidden, cells)


def _gates(
    config: ModelConfig, weights: Weights, window: Tensor, past_distances: Tensor, training: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gates of reading and of prediction (B, T, N), and all distances (B, N + T), from embeddings (B, E, L + T)."""
    released, slots = config.flavour == "released", config.memory_slots
    if not config.parsing:  # what was seen is open
        now = window.new_zeros(len(window), window.shape[2] - config.lookback)
        distances = torch.cat([past_distances, now], 1)
        gates = distances[:, :-1].unfold(1, slots, 1).isfinite().to(window.dtype)
        return gates, gates, distances
    channels = F.conv1d(window, weights["parsing.convolution.weight"], weights["parsing.convolution.bias"])  # (B, H, T)
    channels = _batch_norm(weights, "parsing.norm", channels, training).relu()
    heads = weights["parsing.heads.weight"], weights["parsing.heads.bias"]
    scores = F.conv1d(channels, *heads, groups=config.head_groups)  # (B, 2, T)
    now, following = (scores.sigmoid() if released else scores.relu()).unbind(1)  # (B, T) each
    distances = torch.cat([past_distances, now], 1)
    last = distances[:, 1:].unfold(1, slots, 1)  # (B, T, N)
    alpha = _alpha(config, now[..., None] - last)
    if not released:  # no factor belongs to the newest distance itself
        alpha = torch.cat([alpha[..., :-1], torch.ones_like(alpha[..., -1:])], -1)
    next_alpha = _alpha(config, following[..., None] - last)
    reading, predict = (factors.flip(-1).cumprod(-1).flip(-1) for factors in (alpha, next_alpha))
    return reading, predict, distances


def _alpha(config: ModelConfig, difference: Tensor) -> Tensor:
    """How far the stick runs on, for a difference of distances."""
    if config.temperature == math.inf:
        return (difference >= 0).to(difference.dtype)
    scaled, soft = difference * config.temperature, config.gates == "soft"
    if config.flavour == "released":
        return torch.sigmoid(10 * scaled + 5) if soft else (F.hardtanh(2 * scaled + 1) + 1) / 2
    return ((torch.tanh(scaled) if soft else F.hardtanh(scaled)) + 1) / 2


def _read(
    config: ModelConfig, weights: Weights, layer: int, x: Tensor, hidden: Tensor, cells: Tensor, gates: Tensor
) -> tuple[Tensor, Tensor]:
    """One step of one layer: h_t and c_t (B, H) from x_t, memories (B, N, H) and gates (B, N)."""
    name, released = f"reading.{layer}", config.flavour == "released"
    summary, cell_summary = hidden[:, -1], cells[:, -1]
    if config.reading_attention:
        key = _linear(weights, f"{name}.key", torch.cat([x, hidden[:, -1]], 1))
        attention = _attention(key, hidden, gates)
        summary, cell_summary = _summary(attention, hidden), _summary(attention, cells)
    update = _layer_norm(weights, f"{name}.input_norm", _linear(weights, f"{name}.input_gates", x), released)
    recurrent = _linear(weights, f"{name}.hidden_gates", summary)
    update = update + _layer_norm(weights, f"{name}.hidden_norm", recurrent, released)  # (B, 4H)
    write, keep, candidate, show = update.chunk(4, 1)
    cell = keep.sigmoid() * cell_summary + write.sigmoid() * candidate.tanh()
    return show.sigmoid() * _layer_norm(weights, f"{name}.cell_norm", cell, released).tanh(), cell


def _attention(key: Tensor, memory: Tensor, gates: Tensor) -> Tensor:
    """Structured attention (B, N) of a key (B, H) over a memory (B, N, H)."""
    scores = torch.bmm(memory, key[..., None]).squeeze(2) / math.sqrt(key.shape[1])
    opened = (scores - scores.amax(1, keepdim=True)).exp() * gates
    return opened / (opened.sum(1, keepdim=True) + 1e-8)


def _summary(attention: Tensor, memory: Tensor) -> Tensor:
    return torch.bmm(attention[:, None], memory).squeeze(1)  # (B, H)


def _output(config: ModelConfig, weights: Weights, rows: Tensor, training: bool) -> Tensor:
    """Logits (T·B, V) from rows (T·B, H or 2H)."""

    def mapped(rows: Tensor, linear: str, norm: str) -> Tensor:
        return _batch_norm(weights, norm, _linear(weights, linear, rows), training)

    for block in range(config.residual_blocks):
        name = f"predict.residual.{block}"
        inner = mapped(rows, f"{name}.linear1", f"{name}.norm1").relu()
        rows = (rows + mapped(inner, f"{name}.linear2", f"{name}.norm2")).relu()
    features = mapped(rows, "predict.output", "predict.output_norm").tanh()  # (T·B, E)
    decoder = weights["embedding.weight" if config.tied else "decoder.weight"]
    return F.linear(features, decoder, weights["decoder.bias"])


def _linear(weights: Weights, name: str, x: Tensor) -> Tensor:
    return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])


def _layer_norm(weights: Weights, name: str, x: Tensor, released: bool) -> Tensor:
    gain, bias = weights[f"{name}.gain"], weights[f"{name}.bias"]
    if not released:
        return F.layer_norm(x, gain.shape, gain, bias)
    centred = x - x.mean(-1, keepdim=True)  # torch.std would take longer
    spread = torch.linalg.vector_norm(centred, dim=-1, keepdim=True) / math.sqrt(x.shape[-1] - 1)
    return gain * (centred / (spread + 1e-6)) + bias


def _batch_norm(weights: Weights, name: str, x: Tensor, training: bool) -> Tensor:
    mean, variance = weights[f"{name}.running_mean"], weights[f"{name}.running_var"]
    return F.batch_norm(x, mean, variance, weights[f"{name}.weight"], weights[f"{name}.bias"], training)
