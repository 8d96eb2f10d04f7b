"""Where a run is: all that its next step depends on besides tensors, as numbers that fit a JSON header."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from prpn.training.schedule import Plateau


@dataclass
class Position:
    """Where a run is."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    tokens: int = 0
    seconds: float = 0.0
    nats: float = 0.0
    """Training loss summed over the tokens since the last evaluation."""
    nats_tokens: int = 0
    epoch_nats: float = 0.0
    epoch_tokens: int = 0
    best_loss: float = math.inf
    best_step: int = 0
    without_gain: int = 0
    """Evaluations in a row that brought nothing better."""
    plateau: Plateau = field(default_factory=Plateau)
    metrics_size: int = 0
    """Bytes of metrics.jsonl that belong to this position."""

    @staticmethod
    def from_json(values: dict[str, Any]) -> Position:
        """Inverse of `dataclasses.asdict`."""
        return Position(**{**values, "plateau": Plateau(**values["plateau"])})
