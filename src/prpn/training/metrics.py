"""metrics.jsonl, one JSON object an evaluation, and the same to TensorBoard where it is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Metrics:
    """The figures of a run over time."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "metrics.jsonl"
        self._board_folder = folder / "training" / "tensorboard"
        self._board: Any = None

    def append(self, line: dict[str, Any]) -> int:
        """Write a line; the size of the file after it."""
        with self.path.open("ab") as file:
            file.write((json.dumps(line) + "\n").encode())
            size = file.tell()
        self._board = self._board or _tensorboard(self._board_folder, line["step"])
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


def _tensorboard(folder: Path, step: int) -> Any:
    """A TensorBoard writer if TensorBoard is installed; what an earlier leg wrote from this step on is replaced."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=step)
