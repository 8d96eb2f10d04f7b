"""metrics.jsonl, and TensorBoard where it is installed."""

import json
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from prpn.training.metrics import Metrics


class Board:
    """Stands for TensorBoard's writer, which the tests do not install."""

    made: ClassVar[list["Board"]] = []

    def __init__(self, folder: str, purge_step: int) -> None:
        self.folder, self.purge_step, self.scalars = folder, purge_step, []
        Board.made.append(self)

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.scalars.append((name, float(value), step))

    def flush(self) -> None:
        pass


@pytest.fixture
def tensorboard(monkeypatch: pytest.MonkeyPatch) -> list[Board]:
    module: Any = ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Board
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    monkeypatch.setattr(Board, "made", [])
    return Board.made


def test_without_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    metrics = Metrics(tmp_path)
    sizes = [metrics.append({"step": step, "loss": 1.5}) for step in (1, 2, 3)]
    assert [json.loads(line)["step"] for line in metrics.path.read_text().splitlines()] == [1, 2, 3]
    metrics.cut(sizes[1])
    assert [json.loads(line)["step"] for line in metrics.path.read_text().splitlines()] == [1, 2]
    assert list(tmp_path.iterdir()) == [metrics.path]


def test_with_tensorboard(tmp_path: Path, tensorboard: list[Board]) -> None:
    metrics = Metrics(tmp_path)
    assert tensorboard == []  # nothing is written before there is something to write
    metrics.append({"step": 4, "loss": 1.5})
    metrics.append({"step": 5, "loss": 1.25})
    (board,) = tensorboard
    assert board.purge_step == 4
    assert board.scalars == [("step", 4, 4), ("loss", 1.5, 4), ("step", 5, 5), ("loss", 1.25, 5)]
    assert Path(board.folder).parent == tmp_path / "training"


def test_figures_of_a_group_are_scalars_of_their_own(tmp_path: Path, tensorboard: list[Board]) -> None:
    line = {"step": 4, "best": True, "treebank_f1": {"released": 30.5, "kim": 41.0}}
    metrics = Metrics(tmp_path)
    metrics.append(line)
    assert json.loads(metrics.path.read_text()) == line
    (board,) = tensorboard
    assert [scalar[:2] for scalar in board.scalars] == [
        ("step", 4), ("best", 1), ("treebank_f1/released", 30.5), ("treebank_f1/kim", 41.0),
    ]  # fmt: skip


def test_what_is_not_finite_is_null(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path)
    metrics.append({"step": 4, "loss": math.nan, "perplexity": math.inf, "treebank_f1": {"kim": math.nan}})
    expected = {"step": 4, "loss": None, "perplexity": None, "treebank_f1": {"kim": None}}
    assert json.loads(metrics.path.read_text()) == expected


def test_nothing_to_cut(tmp_path: Path) -> None:
    Metrics(tmp_path).cut(0)
    assert list(tmp_path.iterdir()) == []
