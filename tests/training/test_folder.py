"""A model folder that does not stay what it was while a run writes into it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from prpn.errors import InputError
from prpn.training.lock import LOCK, only_run
from prpn.training.loop import Trainer
from tests.training.tiny import files, run, write_text


def _renamed(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def _another(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "mine").write_text("not a run's")


def _file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("a file")


def _link(folder: Path) -> None:
    _renamed(folder)
    folder.symlink_to("nowhere")


HARMS: dict[str, Callable[[Path], object]] = {
    "removed": shutil.rmtree, "renamed": _renamed, "another": _another, "file": _file, "link": _link
}  # fmt: skip


@pytest.mark.parametrize("step", [1, 5, 14])
@pytest.mark.parametrize("harm", HARMS)
def test_a_folder_that_is_not_there_any_more(
    harm: str, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, text, learn, left = tmp_path / "run", write_text(tmp_path / "text.txt"), Trainer._learn, list[object]()

    def harmed(self: Trainer, batch: object) -> tuple[float, int]:
        if self.position.step == step:
            HARMS[harm](folder)
            left.append(sorted(tmp_path.rglob("*")))
        return learn(self, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(Trainer, "_learn", harmed)
    with pytest.raises(InputError, match=r"run: was removed, renamed or replaced while a run wrote into it; what was"):
        run(folder, text)
    assert len(left) == 1
    after = [path for path in sorted(tmp_path.rglob("*")) if path.name not in ("lock", "training")]
    assert after == [path for path in left[0] if path.name not in ("lock", "training")], "nothing was written"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["config.json", "vocabulary.json"])
def test_a_file_that_was_taken_away(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learn = Trainer._learn

    def harmed(self: Trainer, batch: object) -> tuple[float, int]:
        (tmp_path / "run" / name).unlink(missing_ok=True)
        return learn(self, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(Trainer, "_learn", harmed)
    with pytest.raises(InputError, match=f"run/{name}: was removed while the run went on; begin again"):
        run(tmp_path / "run", write_text(tmp_path / "text.txt"))


def test_a_run_whose_folder_is_gone_leaves_the_lock_of_the_next_one_alone(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with only_run(folder) as require_here:
        require_here()
        shutil.rmtree(folder)
        folder.mkdir()
        with pytest.raises(InputError, match="was removed"):
            require_here()
        other = only_run(folder)
        other.__enter__()
    assert (folder / LOCK).exists()
    other.__exit__(None, None, None)
    assert files(folder) == {}
