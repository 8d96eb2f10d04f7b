"""Small models with drawn weights, and the configurations and inputs hypothesis draws for them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor

from prpn.config import ModelConfig
from prpn.model import PRPN, Output
from prpn.model.reading import ReadingLayer
from tests.reference.model import draw_weights

VOCABULARY = 17
STATISTICS = ("running_mean", "running_var")
KERNELS = ("off", "autograd")
RATES = ("dropout_in_out", "dropout_between", "dropout_recurrent", "dropout_attention", "dropout_weights")
SMALL = ModelConfig(
    flavour="released", embedding=5, hidden=6, layers=2, residual_blocks=1, lookback=2, memory_slots=4, temperature=1.0
)
ABLATIONS = {
    "full": {},
    "no parsing": {"parsing": False},
    "no reading attention": {"reading_attention": False},
    "no predict attention": {"predict_attention": False},
    "lstm": {"parsing": False, "reading_attention": False, "predict_attention": False},
}

seeds = st.integers(0, 2**16)
flavours = st.sampled_from(["paper", "released"])
kinds = st.sampled_from(["hard", "soft"])
temperatures = st.sampled_from([0.5, 1.0, 3.0, 10.0, math.inf])


def key_weight(layer: ReadingLayer) -> Tensor | None:
    """W_h, the half of a layer's key projection that reads h_{t−1}."""
    return layer.key.weight[:, -layer.config.hidden :] if layer.config.reading_attention else None


@st.composite
def configs(draw: st.DrawFn, **fixed: object) -> ModelConfig:
    """Any small configuration without dropout; `fixed` fields are not drawn."""
    flavour = fixed.get("flavour", draw(flavours))
    parsing = fixed.get("parsing", draw(st.booleans()))
    attentions = [(True, True), (True, False), (False, True)] + ([] if parsing else [(False, False)])
    reading, predict = draw(st.sampled_from(attentions))
    even = flavour == "released" and parsing
    values = {
        "flavour": flavour,
        "parsing": parsing,
        "reading_attention": reading,
        "predict_attention": predict,
        "embedding": draw(st.integers(1, 6)),
        "hidden": draw(st.sampled_from([2, 4, 6] if even else [2, 3, 5, 6])),
        "layers": draw(st.integers(1, 3)),
        "residual_blocks": draw(st.integers(0, 2)),
        "tied": draw(st.booleans()),
        "gates": draw(kinds),
        "temperature": draw(temperatures),
        "memory_slots": draw(st.integers(1, 6)),
        "lookback": draw(st.integers(0, 4)),
    }
    return ModelConfig(**{**values, **fixed})


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=generator(seed), dtype=torch.float64)


def tokens_drawn(seed: int, steps: int, batch: int) -> Tensor:
    """Tokens (T, B), no two alike in a stream, so that no two distances are equal but for rounding."""
    numbers = generator(seed)
    return torch.stack([torch.randperm(VOCABULARY, generator=numbers)[:steps] for _ in range(batch)], 1)


def model_of(config: ModelConfig, seed: int = 1) -> PRPN:
    """A model in float64 with the weights the twin draws."""
    model = PRPN(config, VOCABULARY).double()
    load(model, draw_weights(config, VOCABULARY, generator(seed)))
    return model.eval()


def load(model: PRPN, weights: dict[str, Tensor]) -> None:
    missing, unexpected = model.load_state_dict(weights, strict=False)
    tied = ["decoder.weight"] if model.config.tied else []
    assert not unexpected
    assert all(name.endswith(("num_batches_tracked", "distance_scale")) or name in tied for name in missing)


def without_dropout(config: ModelConfig) -> ModelConfig:
    return dataclasses.replace(config, **dict.fromkeys(RATES, 0.0))


@contextmanager
def kernels_set(choice: str) -> Iterator[None]:
    """`PRPN_KERNELS` for a while."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRPN_KERNELS", choice)
        yield


def numbers_of(model: PRPN, output: Output, mask: Tensor | None = None) -> dict[str, Tensor]:
    """Everything of a chunk that is laid out (T, B, …), by name."""
    numbers = {
        "logits": model.logits(output, mask),
        "scores": output.parse.scores,
        "distances": output.parse.distances,
        "next distances": output.parse.next_distances,
        "reading gates": output.parse.reading_gates,
        "predict gates": output.parse.predict_gates,
        "reach": output.reach,
        **{f"reading attention {j}": a for j, a in enumerate(output.reading_attention)},
    }
    return numbers if output.predict_attention is None else {**numbers, "predict attention": output.predict_attention}


def gradients_of(model: PRPN) -> dict[str, Tensor]:
    """The gradient of every parameter; zero where nothing reached it."""
    return {n: torch.zeros_like(p) if p.grad is None else p.grad.clone() for n, p in model.named_parameters()}


def statistics_of(model: PRPN) -> dict[str, Tensor]:
    """The running statistics of every batch norm."""
    return {name: buffer.clone() for name, buffer in model.named_buffers() if name.endswith(STATISTICS)}


def assert_same(mine: Tensor, theirs: Tensor, tolerance: float = 1e-10, name: str = "") -> None:
    """Equal up to `tolerance` times the largest finite number in them (at least 1)."""
    finite = theirs.detach()[theirs.isfinite()].abs()
    size = max(1.0, finite.max().item()) if finite.numel() else 1.0
    torch.testing.assert_close(mine, theirs, rtol=0, atol=tolerance * size, msg=lambda m: f"{name}: {m}")


def assert_all_same(mine: dict[str, Tensor], theirs: dict[str, Tensor], tolerance: float = 1e-10) -> None:
    """The same names with the same numbers."""
    assert mine.keys() == theirs.keys()
    for name in theirs:
        assert_same(mine[name], theirs[name], tolerance, name)
