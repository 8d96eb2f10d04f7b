"""The README's Python examples run, and the commands of all pages are commands."""

import re
import runpy
import shlex
from itertools import groupby, takewhile
from pathlib import Path

import pytest
from typer.main import get_command

from prpn import cli
from prpn.config import load_recipe, recipe_names
from prpn.training.run import train

REPOSITORY = Path(__file__).parents[1]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def test_python_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    example = "".join(re.findall(r"```python\n(.*?)```", README, re.DOTALL))
    monkeypatch.chdir(tmp_path)
    Path("my.txt").write_text("the old man sat on the bench\nthe man is old\n" * 40, encoding="utf-8")
    small = ("model.embedding=8", "model.hidden=8", "training.batch_size=4", "training.steps=3")
    train(load_recipe("quick-word").override(small), Path("runs/mine"), texts=["my.txt"], quiet=True)
    Path("example.py").write_text(example, encoding="utf-8")
    runpy.run_path("example.py")
    assert "bench" in capsys.readouterr().out


def commands() -> list[list[str]]:
    """The words after `prpn` of every command in a block of commands, on every page."""
    found = []
    for page in (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))):
        blocks = re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        for line in "".join(blocks).splitlines():
            for is_pipe, part in groupby(shlex.split(line, comments=True), "|".__eq__):
                name, *words = part
                if not is_pipe and name == "prpn":
                    found.append(list(takewhile(">".__ne__, words)))
    return found


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_is_one(words: list[str]) -> None:
    verb, *rest = words
    context = get_command(cli.app).commands[verb].make_context(verb, rest)  # type: ignore[attr-defined]
    assert context.command.name == verb


def test_every_recipe_is_named() -> None:
    assert len(commands()) > 30
    assert all(f"`{name}`" in README for name in recipe_names())
