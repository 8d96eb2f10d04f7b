"""Model folders and checkpoints of strangers: an answer or one clear line, in bounded time and memory.

`python -m tests.attacks --cases 2000` does far more of this.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from prpn.config import recipe_from
from prpn.model import PRPN
from prpn.models.weights import parameters_of, shapes_of
from prpn.training.checkpoint import weights_of
from tests.attacks.sound import KINDS
from tests.training.tiny import recipe

CASES = 20


@pytest.mark.skipif(not hasattr(os, "fork") or not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_spoiled_folders_are_answered_or_refused() -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "tests.attacks", "--cases", str(CASES), "--seed", "7"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_the_shapes_of_a_network_are_known_without_it(kind: str) -> None:
    config = recipe(*KINDS[kind]).model
    network = PRPN(config, 11)
    assert shapes_of(config, 11) == {name: tuple(tensor.shape) for name, tensor in weights_of(network).items()}
    assert parameters_of(config, 11) == sum(each.numel() for each in network.parameters())


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("blocks", [0, 2])
@pytest.mark.parametrize("attention", ["reading_attention", "predict_attention", "both"])
@pytest.mark.parametrize("flavour", ["paper", "released"])
def test_whatever_its_configuration(flavour: str, attention: str, blocks: int, layers: int, tied: bool) -> None:
    sizes = {"embedding": 3, "hidden": 4, "lookback": 2, "layers": layers, "residual_blocks": blocks, "tied": tied}
    parts = {each: attention in (each, "both") for each in ("reading_attention", "predict_attention")}
    config = recipe_from({"model": {**sizes, **parts, "flavour": flavour}}, "x").model
    weights = weights_of(PRPN(config, 5))
    assert shapes_of(config, 5) == {name: tuple(np.shape(tensor)) for name, tensor in weights.items()}
