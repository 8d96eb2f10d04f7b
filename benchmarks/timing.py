"""Taking turns: one round after the other, each contender once a round."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping

Actions = Mapping[str, Callable[[], object]]

REPEATED = 0.3
"""Seconds for which a product is repeated."""


def alternate(
    actions: Actions, rounds: int, patience: float = math.inf, warm_up: bool = True
) -> dict[str, list[float]]:
    """Seconds of each action in each round, after a round to warm up.

    An action sits out the rest once it was timed and all its turns together have taken `patience` seconds.
    """
    times: dict[str, list[float]] = {name: [] for name in actions}
    spent = dict.fromkeys(actions, 0.0)
    for turn in range(rounds + warm_up):
        for name, action in actions.items():
            if times[name] and spent[name] >= patience:
                continue
            start = time.perf_counter()
            action()
            seconds = time.perf_counter() - start
            spent[name] += seconds
            if turn or not warm_up:
                times[name].append(seconds)
    return times


def best_gigaflops(multiply_adds: float, action: Callable[[], object]) -> float:
    """The highest speed of an action that was repeated for a while, twice at least."""
    times = [_timed(action), _timed(action)]
    while sum(times) < REPEATED:
        times.append(_timed(action))
    return gigaflops(multiply_adds, min(times))


def gigaflops(multiply_adds: float, seconds: float) -> float:
    """A multiply-add is two operations."""
    return 2e-9 * multiply_adds / seconds


def rounded(values: Iterable[float], digits: int = 5) -> list[float]:
    """Seconds as they are written down."""
    return [round(value, digits) for value in values]


def _timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
