"""Weights and checkpoints as safetensors: never a pickle, never half a file.

A model folder holds `config.json`, `vocabulary.json`, `model.safetensors` (the best weights so far), `metrics.jsonl`
and `README.md`. What a run needs to go on lies in `training/checkpoint.safetensors`: tensors by name, and everything
that is not a tensor as JSON in the file's header. One file, replaced in one step, so a run killed at any moment finds
either the old checkpoint or the new one, whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from prpn.errors import InputError
from prpn.model import PRPN
from prpn.text.atomic import replacing


def weights_of(network: PRPN) -> dict[str, Tensor]:
    """Parameters and batch-norm statistics by name; a tied decoder is not stored twice."""
    tied = {"decoder.weight"} if network.config.tied else set()
    return {name: tensor for name, tensor in network.state_dict().items() if name not in tied}


def arrays_of(network: PRPN) -> dict[str, NDArray[np.float32]]:
    """The weights as numpy arrays."""
    return {name: tensor.detach().cpu().float().numpy() for name, tensor in weights_of(network).items()}


def load_weights(network: PRPN, weights: Mapping[str, Tensor], place: str) -> None:
    """Put weights into a network, which must be of the same shape."""
    try:
        tied = {"decoder.weight": weights["embedding.weight"]} if network.config.tied else {}
        later = {"parsing.distance_scale": torch.zeros(())} if network.config.parsing else {}  # not in older files
        network.load_state_dict({**later, **weights, **tied})
    except (RuntimeError, KeyError) as error:
        cause = "no embedding.weight" if isinstance(error, KeyError) else str(error).strip().splitlines()[-1].strip()
        raise InputError(place, f"weights do not fit the configuration ({cause})", "was config.json edited?") from None


def write_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, Any] | None = None) -> None:
    """Write a safetensors file, replacing an older one in one step."""
    metadata = None if header is None else {"json": json.dumps(header)}
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(save(contiguous, metadata=metadata))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and header of a safetensors file."""
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {}).get("json", "{}"))
            return {name: file.get_tensor(name) for name in file.keys()}, header  # noqa: SIM118 - not a mapping
    except FileNotFoundError:
        raise InputError(str(path), "no such file", "is this a model folder?") from None
    except (SafetensorError, OSError) as error:
        raise InputError(str(path), f"not a readable safetensors file ({error})") from None


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's moments as `optimizer.INDEX.NAME`."""
    state = optimizer.state_dict()["state"]
    return {f"optimizer.{i}.{name}": value for i, values in state.items() for name, value in values.items()}


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Inverse of `optimizer_tensors`; moments lie in memory as their weights do, which the fused step relies on."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith("optimizer."):
            _, index, name = key.split(".")
            parameter = parameters[int(index)]
            alike = torch.empty_like(parameter).copy_(tensor) if tensor.shape == parameter.shape else tensor
            state.setdefault(int(index), {})[name] = alike
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
