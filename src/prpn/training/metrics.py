"""metrics.jsonl, one JSON object an evaluation, and the same to TensorBoard where it is installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prpn.errors import InputError
from prpn.models.files import METRICS, finite, parse_json, read_text, require_regular

_REMEDY = "it is damaged: begin again with another --out"


class Metrics:
    """The figures of a run over time."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / METRICS
        self._board_folder = folder / "training" / "tensorboard"
        self._board: Any = None

    def append(self, line: dict[str, Any]) -> int:
        """Write a line, null for what is not finite; the size of the file after it."""
        with self.path.open("ab") as file:
            file.write((json.dumps(finite(line), allow_nan=False) + "\n").encode())
            size = file.tell()
        self._board = self._board or _tensorboard(self._board_folder, line["step"])
        if self._board is not None:
            for name, value in _scalars(line):
                self._board.add_scalar(name, value, line["step"])
            self._board.flush()
        return size

    def cut(self, size: int) -> None:
        """Forget what was written after the file had this size."""
        if self.path.exists() or self.path.is_symlink():
            if self.path.is_symlink():
                raise InputError(str(self.path), "is a link", _REMEDY)  # to what may be no file of this run
            require_regular(self.path, _REMEDY)  # writing to a pipe that nobody reads would take for ever
            with self.path.open("r+b") as file:
                file.truncate(min(size, self.path.stat().st_size))


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run."""
    path = folder / METRICS
    lines = [parse_json(line, path, _REMEDY) for line in read_text(path, _REMEDY).splitlines()]
    if not all(isinstance(line, dict) for line in lines):
        raise InputError(str(path), "not one JSON object a line", _REMEDY)
    return lines


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
