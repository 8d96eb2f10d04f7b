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
from prpn.models.files import shown
from prpn.models.weights import SCALE, Check, opened, require_fit, shapes_in
from prpn.text.atomic import replacing

_MOMENT = re.compile(r"optimizer\.(\d{1,9})\.(exp_avg|exp_avg_sq|step)")
_LARGEST = 1e15
"""Steps of a run."""
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
    _require_sound(config, vocabulary_size, weights, place)
    network = PRPN(config, vocabulary_size)
    load_weights(network, weights, place)
    return network


def load_weights(network: PRPN, weights: Mapping[str, Tensor], place: str) -> None:
    """Put weights into a network, whose own they must be."""
    _require_sound(network.config, network.embedding.num_embeddings, weights, place)
    tied = {"decoder.weight": weights["embedding.weight"]} if network.config.tied else {}
    later = {SCALE: torch.zeros(())} if network.config.parsing else {}
    network.load_state_dict({**later, **weights, **tied})


def _require_sound(config: ModelConfig, vocabulary_size: int, weights: Mapping[str, Tensor], place: str) -> None:
    require_fit({name: tuple(tensor.shape) for name, tensor in weights.items()}, config, vocabulary_size, place)
    for name, tensor in weights.items():
        kept = tensor.float() if tensor.is_floating_point() else tensor
        if not bool(torch.isfinite(kept).all()):
            raise InputError(place, f"{name} holds numbers that are not finite", "did its training diverge?")


def write_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, Any] | None = None) -> None:
    """Write a safetensors file, replacing an older one in one step."""
    metadata = None if header is None else {"json": json.dumps(header)}
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(save(contiguous, metadata=metadata))


def read_tensors(path: Path, check: Check = lambda *_: None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and header of a safetensors file, of which all but one's own is to be checked first."""
    with opened(path, "pt") as (file, header):
        shapes = shapes_in(file)
        check(shapes, header)
        return {name: file.get_tensor(name) for name in shapes}, header


def read_weights(path: Path, config: ModelConfig, vocabulary_size: int) -> dict[str, Tensor]:
    """The weights of a network of this configuration; no other file is read."""
    tensors, _ = read_tensors(path, lambda shapes, _: require_fit(shapes, config, vocabulary_size, str(path)))
    return tensors


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's moments as `optimizer.INDEX.NAME`."""
    state = optimizer.state_dict()["state"]
    return {f"optimizer.{i}.{name}": value for i, values in state.items() for name, value in values.items()}


def moment_of(key: str, parameters: Sequence[Tensor], place: str) -> tuple[int, str]:
    """Which weight a moment belongs to, and what it is called."""
    match = _MOMENT.fullmatch(key)
    if match is None or int(match[1]) >= len(parameters):
        raise InputError(place, f"{shown(key)[1:-1]} belongs to no weight", _DAMAGED)
    return int(match[1]), match[2]


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], place: str = "checkpoint") -> None:
    """Inverse of `optimizer_tensors`; moments lie in memory as their weights do, which the fused step relies on."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if not key.startswith("optimizer."):
            continue
        index, name = moment_of(key, parameters, place)
        shape = torch.Size() if name == "step" else parameters[index].shape
        require_shape(tensors, key, shape, place)
        if name != "exp_avg" and bool((tensor < 0).any()):
            raise InputError(place, f"{key} holds a number below 0", _DAMAGED)
        if name == "step" and float(tensor) > _LARGEST:
            raise InputError(place, f"{key} is {float(tensor):g}", _DAMAGED)
        alike = tensor.float() if name == "step" else torch.empty_like(parameters[index]).copy_(tensor)
        state.setdefault(index, {})[name] = alike
    needed = {"exp_avg_sq", "step"} | ({"exp_avg"} if optimizer.param_groups[0]["betas"][0] else set())
    for index, moments in state.items():
        if missing := sorted(needed - moments.keys()):
            raise InputError(place, f"no optimizer.{index}.{missing[0]} in it", _DAMAGED)
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
