"""The README's Python examples run, and its commands exist."""

import re
import runpy
from pathlib import Path

import pytest
from typer.testing import CliRunner

from prpn import cli
from prpn.config import load_recipe, recipe_names
from prpn.training.run import train

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_python_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    example = "".join(re.findall(r"```python\n(.*?)```", README, re.DOTALL))
    monkeypatch.chdir(tmp_path)
    Path("my.txt").write_text("the old man sat on the bench\nthe man is old\n" * 40, encoding="utf-8")
    small = ("model.embedding=8", "model.hidden=8", "training.batch_size=4", "training.steps=3")
    train(load_recipe("quick-word").override(small), Path("runs/mine"), texts=["my.txt"], quiet=True)
    Path("example.py").write_text(example, encoding="utf-8")
    runpy.run_path("example.py")
    assert "bench" in capsys.readouterr().out


def test_every_command_and_recipe_exists() -> None:
    commands = re.findall(r"^prpn (.*)$", README, re.MULTILINE)
    assert commands
    for command in commands:
        verb, *words = command.split()
        options = [word for word in words if word.startswith("--")]
        help_text = CliRunner().invoke(cli.app, [verb, "--help"], env={"COLUMNS": "200"}).output
        assert all(option in help_text for option in options), command
    assert all(f"`{name}`" in README for name in recipe_names())
