"""metrics.jsonl, one JSON object an evaluation, and the same to TensorBoard where it is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Metrics:
    """The figures of a run over time."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "metrics.jsonl"
        self._board = _tensorboard(folder / "training" / "tensorboard")

    def append(self, line: dict[str, Any]) -> int:
        """Write a line; the size of the file after it."""
        with self.path.open("ab") as file:
            file.write((json.dumps(line) + "\n").encode())
            size = file.tell()
        if self._board is not None:
            for name, value in line.items():
                self._board.add_scalar(name, value, line["step"])
            self._board.flush()
        return size

    def cut(self, size: int) -> None:
        """Forget what was written after the file had this size."""
        if self.path.exists():
            with self.path.open("r+b") as file:
                file.truncate(min(size, self.path.stat().st_size))


def _tensorboard(folder: Path) -> Any:
    """A TensorBoard writer if TensorBoard is installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder))
