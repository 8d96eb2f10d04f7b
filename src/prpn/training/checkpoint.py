"""Weights and checkpoints as safetensors: never a pickle, never half a file.

A model folder holds `config.json`, `vocabulary.json`, `model.safetensors` (the best weights so far), `metrics.jsonl`
and `README.md`. What a run needs to go on lies in `training/checkpoint.safetensors`: tensors by name, and everything
that is not a tensor as JSON in the file's header. One file, replaced in one step, so a run killed at any moment finds
either the old checkpoint or the new one, whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save
from torch import Tensor

from prpn.config import ModelConfig
from prpn.errors import InputError
from prpn.model import PRPN
from prpn.models.weights import SCALE, opened
from prpn.text.atomic import replacing

_MOMENT = re.compile(r"optimizer\.(\d{1,9})\.(exp_avg|exp_avg_sq|step)")
_DAMAGED = "it is damaged: begin again with another --out"


def weights_of(network: PRPN) -> dict[str, Tensor]:
    """Parameters and batch-norm statistics by name; a tied decoder is not stored twice."""
    tied = {"decoder.weight"} if network.config.tied else set()
    return {name: tensor for name, tensor in network.state_dict().items() if name not in tied}


def arrays_of(network: PRPN) -> dict[str, NDArray[np.float32]]:
    """The weights as numpy arrays."""
    return {name: tensor.detach().cpu().float().numpy() for name, tensor in weights_of(network).items()}


def tensors_of(arrays: Mapping[str, NDArray[np.float32]]) -> dict[str, Tensor]:
    """Inverse of `arrays_of`."""
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def names_of(config: ModelConfig) -> set[str]:
    """What the weights of a network are called."""
    with torch.device("meta"):  # shapes without numbers
        return set(PRPN(config, 1).state_dict())


def network_of(config: ModelConfig, vocabulary_size: int, weights: Mapping[str, Tensor], place: str) -> PRPN:
    """A network with these weights, made only once they are known to be its own: sizes in a file cost nothing."""
    require_fit(config, vocabulary_size, weights, place)
    network = PRPN(config, vocabulary_size)
    load_weights(network, weights, place)
    return network


def require_fit(config: ModelConfig, vocabulary_size: int, weights: Mapping[str, Tensor], place: str) -> None:
    """Refuse weights that are not those of a network of this configuration, by their names, shapes and values."""
    remedy = "take config.json, vocabulary.json and weights of the same model"
    try:
        with torch.device("meta"):  # shapes without numbers
            expected = weights_of(PRPN(config, vocabulary_size))
    except (RuntimeError, TypeError):
        raise InputError(place, "weights do not fit the configuration, whose sizes no memory holds", remedy) from None
    for name, tensor in expected.items():
        if name not in weights:
            if name == SCALE:  # not in older files
                continue
            raise InputError(place, f"weights do not fit the configuration (no {name})", remedy)
        if weights[name].shape != tensor.shape:
            sizes = f"{name}: {tuple(weights[name].shape)}, expected {tuple(tensor.shape)}"
            raise InputError(place, f"weights do not fit the configuration ({sizes})", remedy)
    if unexpected := sorted(weights.keys() - expected.keys()):
        raise InputError(place, f"weights do not fit the configuration (nothing is called {unexpected[0]})", remedy)
    for name, tensor in weights.items():
        if not bool(torch.isfinite(tensor).all()):
            raise InputError(place, f"{name} holds numbers that are not finite", "did its training diverge?")


def load_weights(network: PRPN, weights: Mapping[str, Tensor], place: str) -> None:
    """Put weights into a network, whose own they must be."""
    require_fit(network.config, network.embedding.num_embeddings, weights, place)
    tied = {"decoder.weight": weights["embedding.weight"]} if network.config.tied else {}
    later = {SCALE: torch.zeros(())} if network.config.parsing else {}
    network.load_state_dict({**later, **weights, **tied})


def write_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, Any] | None = None) -> None:
    """Write a safetensors file, replacing an older one in one step."""
    metadata = None if header is None else {"json": json.dumps(header)}
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(save(contiguous, metadata=metadata))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and header of a safetensors file."""
    with opened(path, "pt") as (file, header):
        return {name: file.get_tensor(name) for name in file.keys()}, header  # noqa: SIM118 - not a mapping


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's moments as `optimizer.INDEX.NAME`."""
    state = optimizer.state_dict()["state"]
    return {f"optimizer.{i}.{name}": value for i, values in state.items() for name, value in values.items()}


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], place: str = "checkpoint") -> None:
    """Inverse of `optimizer_tensors`; moments lie in memory as their weights do, which the fused step relies on."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if not key.startswith("optimizer."):
            continue
        match = _MOMENT.fullmatch(key)
        if match is None or int(match[1]) >= len(parameters):
            raise InputError(place, f"{key} belongs to no weight", _DAMAGED)
        index, name = int(match[1]), match[2]
        shape = torch.Size() if name == "step" else parameters[index].shape
        require_shape(tensors, key, shape, place)
        alike = tensor if name == "step" else torch.empty_like(parameters[index]).copy_(tensor)
        state.setdefault(index, {})[name] = alike
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def require_shape(tensors: Mapping[str, Tensor], name: str, shape: Sequence[int], place: str) -> Tensor:
    """One tensor of a checkpoint, which must be there, of this shape and nowhere not a number."""
    if name not in tensors:
        raise InputError(place, f"no {name} in it", _DAMAGED)
    tensor = tensors[name]
    if tensor.shape != torch.Size(shape):
        raise InputError(place, f"{name} has shape {tuple(tensor.shape)}, expected {tuple(shape)}", _DAMAGED)
    if tensor.is_floating_point() and bool(tensor.isnan().any()):
        raise InputError(place, f"{name} holds what is not a number", _DAMAGED)
    return tensor
