"""Learning rates: warm-up, then constant, a cosine to the end of the run, or steps down when a loss stops falling.

rate(step) = base · min(1, (step + 1)/warm-up) · shape(step)
cosine:    floor + (1 − floor) · (1 + cos(π · progress)) / 2,   progress = (step − warm-up) / (total − warm-up)
one-cycle: as cosine, with a warm-up of 30 % of the run (Smith 2018), so that a higher rate can be borne
plateau:   factor^(number of times `patience` + 1 epochs in a row brought nothing better)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from prpn.config import TrainingConfig

RISE = 0.3
"""Share of a one-cycle run in which the rate rises."""


@dataclass(frozen=True)
class Plateau:
    """What the plateau schedule remembers."""

    best: float = math.inf
    bad_epochs: int = 0
    scale: float = 1.0

    def after_epoch(self, loss: float, config: TrainingConfig) -> Plateau:
        """The state after an epoch that ended with `loss`."""
        if loss < self.best:
            return replace(self, best=loss, bad_epochs=0)
        if self.bad_epochs + 1 > config.plateau_patience:
            return replace(self, bad_epochs=0, scale=self.scale * config.plateau_factor)
        return replace(self, bad_epochs=self.bad_epochs + 1)


def learning_rate(config: TrainingConfig, step: int, total_steps: int, plateau: Plateau) -> float:
    """The rate of the step with this number, counted from 0."""
    rate = config.learning_rate
    warmup = round(RISE * total_steps) if config.schedule == "one-cycle" else config.warmup_steps
    if warmup:
        rate *= min(1.0, (step + 1) / warmup)
    if config.schedule == "plateau":
        rate *= plateau.scale
    elif config.schedule in ("cosine", "one-cycle") and step >= warmup:
        progress = (step - warmup) / max(1, total_steps - warmup)
        rate *= config.cosine_floor + (1 - config.cosine_floor) * (1 + math.cos(math.pi * min(1.0, progress))) / 2
    return rate
