"""metrics.jsonl, one JSON object an evaluation, and the same to TensorBoard where it is installed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Metrics:
    """The figures of a run over time."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "metrics.jsonl"
        self._board_folder = folder / "training" / "tensorboard"
        self._board: Any = None

    def append(self, line: dict[str, Any]) -> int:
        """Write a line, null for what is not finite; the size of the file after it."""
        with self.path.open("ab") as file:
            file.write((json.dumps(_finite(line), allow_nan=False) + "\n").encode())
            size = file.tell()
        self._board = self._board or _tensorboard(self._board_folder, line["step"])
        if self._board is not None:
            for name, value in _scalars(line):
                self._board.add_scalar(name, value, line["step"])
            self._board.flush()
        return size

    def cut(self, size: int) -> None:
        """Forget what was written after the file had this size."""
        if self.path.exists():
            with self.path.open("r+b") as file:
                file.truncate(min(size, self.path.stat().st_size))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _scalars(line: dict[str, Any], group: str = "") -> Iterator[tuple[str, float]]:
    """The figures one by one, those of a group as `group/name`."""
    for name, value in line.items():
        if isinstance(value, dict):
            yield from _scalars(value, f"{group}{name}/")
        else:
            yield group + name, value


def _tensorboard(folder: Path, step: int) -> Any:
    """A TensorBoard writer if TensorBoard is installed; what an earlier leg wrote from this step on is replaced."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=step)
