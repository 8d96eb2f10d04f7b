"""Fast twins of hot paths: the same results as model/, chosen automatically, never required.

`PRPN_KERNELS=off` switches them off, so that everything runs as written in model/.
"""

from __future__ import annotations

import os

from prpn.errors import ConfigError
from prpn.kernels.layer_norm import fast_layer_norm
from prpn.kernels.loss import chunked_cross_entropy
from prpn.kernels.recurrence import fast_recurrence

__all__ = ["chunked_cross_entropy", "fast_layer_norm", "fast_recurrence", "in_use"]


def in_use() -> str:
    """Which implementation runs: `torch` (hand-written backward through time) or `off`."""
    choice = os.environ.get("PRPN_KERNELS", "torch")
    if choice not in ("torch", "off"):
        raise ConfigError(f"PRPN_KERNELS={choice}: choose torch or off")
    return choice
