"""Pages with examples: their Python blocks run in order, and print what the block below each of them shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).parents[1]
_EXAMPLE = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```\n(?P<shown>.*?)^```\n)?", re.DOTALL | re.MULTILINE)


class Example(NamedTuple):
    """A block of Python, where it begins, and what the page says that it prints; None where it says nothing."""

    line: int
    code: str
    shown: str | None


def examples_of(page: Path) -> list[Example]:
    text = page.read_text(encoding="utf-8")
    return [
        Example(text.count("\n", 0, found.start("code")) + 1, found["code"], found["shown"])
        for found in _EXAMPLE.finditer(text)
    ]


def run(example: Example, page: Path, names: dict[str, Any]) -> str:
    """What a block prints; errors name the line of the page."""
    code = compile("\n" * (example.line - 1) + example.code, str(page), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, names)
    return "\n".join(line.rstrip() for line in printed.getvalue().splitlines()).rstrip()


def write_data(folder: Path) -> None:
    """The files that examples read."""
    lines = ["the old man sat on the bench", "the man is old", "a dog ran", "we saw it", "the dog saw the old bench"]
    (folder / "my.txt").write_text("\n".join(lines * 20) + "\n", encoding="utf-8")
    (folder / "valid.txt").write_text("\n".join(lines * 2) + "\n", encoding="utf-8")
    trees = (REPOSITORY / "src/prpn/corpora/masc/masc.trees").read_text(encoding="utf-8").splitlines()
    (folder / "trees.mrg").write_text("\n".join(trees[:60]) + "\n", encoding="utf-8")
