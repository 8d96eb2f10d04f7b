"""The whole network, one time step after the other; every dropout is 0.

Parsing   q_t = ReLU(BN(W_c [e_{t−L}; …; e_t] + b_c))               L zero vectors before the start
          d_t = act(w_d q_t + b_d),  d'_{t+1} = act(w'_d q_t + b'_d)
          act: ReLU in the paper, where both heads read all of q_t; sigmoid in the released code, where d_t reads the
          first half of q_t and d'_{t+1} the second
Reading   per layer, see reading.py; x_t is e_t in the first layer and h_t of the layer below in the others
Predict   s   = structured attention of W_p h_t + b_p over h_{t−N_m} … h_{t−1} of the top layer with the predict gates
          z_t = [h_t; Σ s_i h_i]                                     without predict attention: z_t = h_t
          z_t ← ReLU(z_t + BN(W_2 ReLU(BN(W_1 z_t + b_1)) + b_2))    per residual block
          logits = D tanh(BN(W_o z_t + b_o)) + b_D                   D = E, the embedding, if tied

Without parsing network every state really seen is open, see `seen_gates`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from prpn.config import ModelConfig
from tests.reference.attention import structured_attention, summary
from tests.reference.gates import predict_gates, reading_gates, seen_gates
from tests.reference.norms import batch_norm
from tests.reference.reading import read


@dataclass(frozen=True)
class State:
    """What one chunk hands to the next; everything oldest first."""

    embeddings: Tensor
    """(L, B, E): zero before the start."""
    distances: Tensor | None
    """(N_m, B): +∞ before the start; none without parsing network."""
    hidden: tuple[Tensor, ...]
    """Per layer (N_m, B, H): zero before the start."""
    cell: tuple[Tensor, ...]
    """Per layer (N_m, B, H)."""
    seen: int
    """How many time steps lie behind."""

    def detach(self) -> State:
        """The same numbers without their history."""
        return State(
            self.embeddings.detach(),
            None if self.distances is None else self.distances.detach(),
            tuple(h.detach() for h in self.hidden),
            tuple(c.detach() for c in self.cell),
            self.seen,
        )


@dataclass(frozen=True)
class Result:
    """Everything computed for one chunk; without parsing network the four distance fields are none."""

    logits: Tensor
    """(T, B, V)"""
    distances: Tensor | None
    """(T, B): d_t"""
    next_distances: Tensor | None
    """(T, B): d'_{t+1}, at t"""
    pre_activations: Tensor | None
    """(T, B): d_t before its activation"""
    next_pre_activations: Tensor | None
    """(T, B): d'_{t+1} before its activation"""
    reading_gates: Tensor
    """(T, B, N_m), oldest slot first, also where no attention reads them"""
    reading_attention: tuple[Tensor, ...]
    """Per layer (T, B, N_m); empty without reading attention"""
    predict_gates: Tensor
    """(T, B, N_m)"""
    predict_attention: Tensor | None
    """(T, B, N_m); none without predict attention"""
    hidden: tuple[Tensor, ...]
    """Per layer (T, B, H)"""
    state: State
    statistics: dict[str, Tensor]
    """Running batch-norm statistics after the chunk, by their names among the weights; unchanged in evaluation"""


def initial_state(config: ModelConfig, weights: dict[str, Tensor], batch: int) -> State:
    """Before the start: zero embeddings, zero states, infinite distances."""
    like = weights["embedding.weight"]
    slots = (config.memory_slots, batch)
    zeros = tuple(like.new_zeros(*slots, config.hidden) for _ in range(config.layers))
    return State(
        embeddings=like.new_zeros(config.lookback, batch, config.embedding),
        distances=like.new_full(slots, math.inf) if config.parsing else None,
        hidden=zeros,
        cell=zeros,
        seen=0,
    )


def run(
    config: ModelConfig,
    weights: dict[str, Tensor],
    tokens: Tensor,
    state: State | None = None,
    training: bool = False,
    mask: Tensor | None = None,
) -> Result:
    """Read tokens (T, B) from `state` on (none: from the start).

    `mask` (T, B) is true at real tokens and false at padding, which stands right of them. Padding stays out of the
    batch-norm statistics; what comes out there, and the state after it, means nothing.
    """
    steps, batch = tokens.shape
    if state is None:
        state = initial_state(config, weights, batch)
    statistics: dict[str, Tensor] = {}
    embeddings = weights["embedding.weight"][tokens]  # (T, B, E)
    past_and_present = torch.cat([state.embeddings, embeddings])  # (L + T, B, E)

    # Parsing network, then all gates: neither needs the recurrence.
    before = after = before_next = after_next = all_distances = None
    gates_read, gates_predict = [], []  # T lists of N_m gates, each (B,)
    if config.parsing:
        before, before_next = _parse(config, weights, past_and_present, training, mask, statistics)  # (T, B)
        activation = torch.relu if config.flavour == "paper" else torch.sigmoid
        after, after_next = activation(before), activation(before_next)  # (T, B)
        assert state.distances is not None
        all_distances = torch.cat([state.distances, after])  # (N_m + T, B): time t stands at N_m + t
        sharpness = (config.memory_slots, config.flavour, config.gates, config.temperature)
        for t in range(steps):
            now = config.memory_slots + t
            gates_read.append(reading_gates(all_distances, now, *sharpness))
            gates_predict.append(predict_gates(all_distances, after_next[t], now, *sharpness))
    else:
        for t in range(steps):
            gates_read.append(seen_gates(embeddings[t, :, 0], state.seen + t, config.memory_slots))
            gates_predict.append(gates_read[t])

    # Reading network: the tapes grow to the right.
    hidden = [list(tape) for tape in state.hidden]  # layers × (N_m + t) of (B, H)
    cell = [list(tape) for tape in state.cell]
    reading_attention: list[list[Tensor]] = [[] for _ in range(config.layers)]
    for t in range(steps):
        x = embeddings[t]  # (B, E)
        for layer in range(config.layers):
            h, c, attended = read(
                x,
                hidden[layer][-config.memory_slots :],
                cell[layer][-config.memory_slots :],
                gates_read[t],
                weights,
                layer,
                config.flavour,
                config.reading_attention,
            )
            hidden[layer].append(h)
            cell[layer].append(c)
            if attended is not None:
                reading_attention[layer].append(torch.stack(attended, -1))  # (B, N_m)
            x = h  # (B, H)

    # Predict network.
    features, predict_attention = [], []
    for t in range(steps):
        now = config.memory_slots + t
        h = hidden[-1][now]  # (B, H)
        if config.predict_attention:
            key = F.linear(h, weights["predict.key.weight"], weights["predict.key.bias"])  # (B, H)
            tape = hidden[-1][now - config.memory_slots : now]  # h_{t−N_m} … h_{t−1}
            attended = structured_attention(key, tape, gates_predict[t])
            predict_attention.append(torch.stack(attended, -1))  # (B, N_m)
            h = torch.cat([h, summary(attended, tape)], -1)  # (B, 2H)
        features.append(h)
    logits = _output(config, weights, torch.stack(features), training, mask, statistics)  # (T, B, V)

    return Result(
        logits=logits,
        distances=after,
        next_distances=after_next,
        pre_activations=before,
        next_pre_activations=before_next,
        reading_gates=torch.stack([torch.stack(gates, -1) for gates in gates_read]),
        reading_attention=tuple(torch.stack(a) for a in reading_attention if a),
        predict_gates=torch.stack([torch.stack(gates, -1) for gates in gates_predict]),
        predict_attention=torch.stack(predict_attention) if predict_attention else None,
        hidden=tuple(torch.stack(tape[config.memory_slots :]) for tape in hidden),
        state=State(
            embeddings=past_and_present[steps:],
            distances=None if all_distances is None else all_distances[steps:],
            hidden=tuple(torch.stack(tape[steps:]) for tape in hidden),
            cell=tuple(torch.stack(tape[steps:]) for tape in cell),
            seen=state.seen + steps,
        ),
        statistics=statistics,
    )


def _parse(
    config: ModelConfig,
    weights: dict[str, Tensor],
    embeddings: Tensor,
    training: bool,
    mask: Tensor | None,
    statistics: dict[str, Tensor],
) -> tuple[Tensor, Tensor]:
    """d_t and d'_{t+1} before their activations, each (T, B), from embeddings (L + T, B, E)."""
    kernel, bias = weights["parsing.convolution.weight"], weights["parsing.convolution.bias"]  # (H, E, L + 1), (H,)
    convolved = []
    for t in range(embeddings.shape[0] - config.lookback):
        q = bias  # (H,), then (B, H)
        for k in range(config.lookback + 1):  # kernel column k meets e_{t−L+k}
            q = q + embeddings[t + k] @ kernel[:, :, k].T
        convolved.append(q)
    normed, after = batch_norm(torch.stack(convolved), weights, "parsing.norm", training, mask)  # (T, B, H)
    statistics.update(after)
    q = torch.relu(normed)
    heads, bias = weights["parsing.heads.weight"], weights["parsing.heads.bias"]  # (2, H or H/2, 1), (2,)
    half = config.hidden // 2
    first, second = (q, q) if config.flavour == "paper" else (q[..., :half], q[..., half:])
    return first @ heads[0, :, 0] + bias[0], second @ heads[1, :, 0] + bias[1]


def _output(
    config: ModelConfig,
    weights: dict[str, Tensor],
    z: Tensor,
    training: bool,
    mask: Tensor | None,
    statistics: dict[str, Tensor],
) -> Tensor:
    """Logits (T, B, V) from z (T, B, 2H or H)."""

    def linear(x: Tensor, name: str) -> Tensor:
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def norm(x: Tensor, name: str) -> Tensor:
        y, after = batch_norm(x, weights, name, training, mask)
        statistics.update(after)
        return y

    for block in range(config.residual_blocks):
        name = f"predict.residual.{block}"
        inner = torch.relu(norm(linear(z, f"{name}.linear1"), f"{name}.norm1"))
        z = torch.relu(z + norm(linear(inner, f"{name}.linear2"), f"{name}.norm2"))
    output = torch.tanh(norm(linear(z, "predict.output"), "predict.output_norm"))  # (T, B, E)
    return F.linear(output, weights["embedding.weight" if config.tied else "decoder.weight"], weights["decoder.bias"])


def weight_shapes(config: ModelConfig, vocabulary: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of all weights and batch-norm statistics of a configuration; a tied decoder has no weight."""
    embedding, hidden = config.embedding, config.hidden
    shapes: dict[str, tuple[int, ...]] = {"embedding.weight": (vocabulary, embedding)}

    def linear(name: str, outputs: int, inputs: int) -> None:
        shapes.update({f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)})

    def norm(name: str, size: int) -> None:
        shapes.update({f"{name}.{key}": (size,) for key in ("weight", "bias", "running_mean", "running_var")})

    if config.parsing:
        shapes["parsing.convolution.weight"] = (hidden, embedding, config.lookback + 1)
        shapes["parsing.convolution.bias"] = (hidden,)
        norm("parsing.norm", hidden)
        shapes["parsing.heads.weight"] = (2, hidden if config.flavour == "paper" else hidden // 2, 1)
        shapes["parsing.heads.bias"] = (2,)
    for layer in range(config.layers):
        name, inputs = f"reading.{layer}", embedding if layer == 0 else hidden
        linear(f"{name}.input_gates", 4 * hidden, inputs)
        linear(f"{name}.hidden_gates", 4 * hidden, hidden)
        for site, size in (("input_norm", 4 * hidden), ("hidden_norm", 4 * hidden), ("cell_norm", hidden)):
            shapes.update({f"{name}.{site}.gain": (size,), f"{name}.{site}.bias": (size,)})
        if config.reading_attention:
            linear(f"{name}.key", hidden, inputs + hidden)
    width = hidden
    if config.predict_attention:
        linear("predict.key", hidden, hidden)
        width = 2 * hidden
    for block in range(config.residual_blocks):
        for half in (1, 2):
            linear(f"predict.residual.{block}.linear{half}", width, width)
            norm(f"predict.residual.{block}.norm{half}", width)
    linear("predict.output", embedding, width)
    norm("predict.output_norm", embedding)
    if not config.tied:
        shapes["decoder.weight"] = (vocabulary, embedding)
    shapes["decoder.bias"] = (vocabulary,)
    return shapes


def draw_weights(
    config: ModelConfig, vocabulary: int, generator: torch.Generator, dtype: torch.dtype = torch.float64
) -> dict[str, Tensor]:
    """Random weights, spread so that distances differ and gates open and close; variances and gains are positive."""
    weights = {}
    for name, shape in weight_shapes(config, vocabulary).items():
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        if name.endswith(("running_var", "norm.weight", "norm1.weight", "norm2.weight", "gain")):
            value = 1 + 0.5 * torch.tanh(noise)
        elif len(shape) == 1:
            value = 0.3 * noise
        elif name in ("embedding.weight", "decoder.weight"):
            value = noise
        else:
            value = noise / math.sqrt(math.prod(shape[1:]))
        weights[name] = value.to(dtype)
    return weights
