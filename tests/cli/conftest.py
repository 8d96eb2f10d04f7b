"""The command in this process, and a folder with a model that it trained."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from prpn.cli import main
from tests.cli.command import Command, Result
from tests.training.tiny import toml, write_text


@pytest.fixture
def prpn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run the command in this process."""

    def run(*words: object, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "argv", ["prpn", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main()
        code = exit_.value.code
        return Result(code if isinstance(code, int) else int(code is not None), *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recipe, a text, and a model trained by the command line."""
    folder = tmp_path_factory.mktemp("work")
    toml(folder / "tiny.toml", "training.epochs=1")
    write_text(folder / "text.txt")
    write_text(folder / "test.txt", 8, seed=3)
    with pytest.MonkeyPatch.context() as patch:
        words = ["train", folder / "tiny.toml", "--text", folder / "text.txt", "--out", folder / "model"]
        patch.setattr(sys, "argv", ["prpn", *map(str, words)])
        with pytest.raises(SystemExit) as exit_:
            main()
    assert exit_.value.code == 0
    return folder
