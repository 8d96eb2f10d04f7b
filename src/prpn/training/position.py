"""Where a run is: all that its next step depends on besides tensors, as numbers that fit a JSON header."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from prpn.models.files import shown
from prpn.training.schedule import Plateau

_LARGEST = 2**53
"""Of counts and sums alike: whatever they are of, no run comes so far."""
_MAY_BE_ENDLESS = ("best_loss", "best")
"""Before there was a loss."""


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
    def from_json(values: Any, batches_an_epoch: int) -> Position:
        """Inverse of `dataclasses.asdict`; a ValueError where the values are none of a run."""
        if not isinstance(values, dict) or not isinstance(values.get("plateau"), dict):
            raise ValueError("no position")
        position = _typed(Position, {**values, "plateau": _typed(Plateau, values["plateau"])})
        if position.step != position.epoch * batches_an_epoch + position.batch:
            raise ValueError(f"step {position.step:,} is not batch {position.batch:,} of epoch {position.epoch:,}")
        if not 0 <= position.batch < batches_an_epoch or position.best_step > position.step:
            raise ValueError(f"batch {position.batch:,}, best step {position.best_step:,}")
        return position


def _typed(kind: type[Any], values: dict[str, Any]) -> Any:
    """A dataclass whose numbers are those of a run: whole where they count, none below 0, all of them numbers."""
    types = get_type_hints(kind)
    if unknown := values.keys() ^ types.keys():
        raise ValueError(f"{shown(sorted(unknown)[0])[1:-1]} is missing or unknown")
    for name, value in values.items():
        if types[name] is Plateau:
            continue
        wanted = (int,) if types[name] is int else (int, float)
        endless = name in _MAY_BE_ENDLESS and value == math.inf
        if type(value) not in wanted or not (0 <= value <= _LARGEST or endless):  # which is false of what is no number
            raise ValueError(f"{name} = {shown(value)}")
    return kind(**values)
