"""A figure measured again beside the recorded one.

    difference = now − recorded,      repeated if  |difference| ≤ allowed · recorded
    allowed    = 2 · spread · √(1/a + 1/b),  and never less than `ROUNDING`

`spread` is the relative standard deviation between seeds that the experiment states, a and b are how many seeds the two
means have. So about one comparison in twenty fails by chance if seeds alone make the difference. Where all seeds that
were run are recorded, the recorded mean is over these alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from prpn.reproduction.experiments import Figure

ROUNDING = 0.001
"""Relative difference that other machines and versions make where no seed plays a part."""


@dataclass(frozen=True)
class Comparison:
    """What was measured now, by seed, and what was recorded."""

    figure: Figure
    by_seed: Mapping[str, float]
    recorded_by_seed: Mapping[str, float]

    @property
    def now(self) -> float:
        """The mean over the seeds that were run."""
        return fmean(self.by_seed.values())

    @property
    def _compared(self) -> list[float]:
        same = [value for seed, value in self.recorded_by_seed.items() if seed in self.by_seed]
        return same if len(same) == len(self.by_seed) else list(self.recorded_by_seed.values())

    @property
    def recorded(self) -> float | None:
        """The recorded mean over the same seeds, or over all if others were run; None: not recorded yet."""
        return fmean(self._compared) if self._compared else None

    @property
    def difference(self) -> float | None:
        """By how much the figure is now greater."""
        return None if self.recorded is None else self.now - self.recorded

    @property
    def allowed(self) -> float | None:
        """The largest difference that counts as the same."""
        if self.recorded is None:
            return None
        by_seeds = 2 * self.figure.spread * math.sqrt(1 / len(self.by_seed) + 1 / len(self._compared))
        return max(by_seeds, ROUNDING) * abs(self.recorded)

    @property
    def within(self) -> bool | None:
        """Whether the figure was repeated; None where there is nothing to compare with."""
        if self.difference is None or self.allowed is None:
            return None
        return abs(self.difference) <= self.allowed

    def to_json(self) -> dict[str, Any]:
        """The comparison by the names that scripts read."""
        return {
            "value": self.now,
            "by_seed": dict(self.by_seed),
            "recorded": self.recorded,
            "difference": self.difference,
            "allowed": self.allowed,
            "within": self.within,
        }
