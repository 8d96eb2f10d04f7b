"""docs/library.md and the README: their Python runs as it stands and prints what they show; public names are used."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import prpn
from prpn.kernels import native
from tests import pages

REPOSITORY = Path(__file__).parents[1]
PAGE = REPOSITORY / "docs" / "library.md"
PROGRAM = REPOSITORY / "examples" / "library.py"
EXAMPLES = pages.examples_of(PAGE)


@pytest.fixture(autouse=True, scope="module")
def _no_word_of_a_missing_core() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if native.library() is None:
            patch.setenv("PRPN_KERNELS", "off")
        yield


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the blocks before have defined, in a folder with small data."""
    folder = tmp_path_factory.mktemp("page")
    pages.write_data(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield {"__name__": "page"}


def test_every_block_runs_and_prints_what_is_shown(names: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
    assert len(EXAMPLES) > 15
    for example in EXAMPLES:
        printed = pages.run(example, PAGE, names)
        assert printed == (example.shown or "").rstrip(), f"{PAGE.name}, line {example.line}"
    assert capfd.readouterr() == ("", ""), "a library prints nothing"


def test_every_python_block_is_found() -> None:
    assert len(EXAMPLES) == PAGE.read_text(encoding="utf-8").count("```python\n")


def test_lines_of_the_page_are_short() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 100 and not line.startswith("|")] == []


def test_links_of_the_page_lead_somewhere() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", text):
        name, _, anchor = target.partition("#")
        page = PAGE.parent / name if name else PAGE
        assert page.is_file(), target
        headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE) if anchor else []
        anchors = {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-").lower() for heading in headings}
        assert not anchor or anchor in anchors, target


def test_the_interface_in_one_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pages.write_data(tmp_path)
    small = {"model.embedding": 8, "model.hidden": 8, "training.batch_size": 4, "training.steps": 3}
    lines = ["the old man sat", "we saw it"]

    model = prpn.load()
    tree = model.parse("the old man sat on the bench")
    assert tree == model.parse(["the", "old", "man", "sat", "on", "the", "bench"])
    assert all([tree.brackets(), tree.spans(), tree.children, tree.pretty(), tree.svg(), tree.to_nltk()])
    assert [tree.brackets() for tree in model.pipe(lines)] == list(model.pipe(lines, form="brackets"))
    model.parse_file("my.txt", "my.trees")
    assert len(Path("my.trees").read_text(encoding="utf-8").splitlines()) == 100
    assert len(model.distances(lines[0])) == 4
    assert model.surprisal(lines[0])[-1].token == "</s>"
    assert model.perplexity("\n".join(lines)) > 1
    assert model.generate("the old man", tokens=3)
    model = prpn.train("quick-word", "my.txt", out="runs/mine", settings=small)
    model.save("elsewhere")
    assert prpn.load("elsewhere", device="cpu").parse(lines[0]) == model.parse(lines[0])
    assert "kim" in repr(prpn.evaluate(model, "trees.mrg"))
    parser = prpn.BatchParser("english", threads=1)
    assert len(parser.spans(lines)) == len(parser.lines(lines)) == 2


def test_the_example_program_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(PROGRAM)], cwd=tmp_path, capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "((the (old man)) (sat (on (the bench))))" in done.stdout
    assert list(tmp_path.iterdir()) == [], "it cleans up"


def test_every_public_name_is_shown() -> None:
    sources = [PROGRAM.read_text(encoding="utf-8"), *(example.code for example in EXAMPLES)]
    nodes = [node for source in sources for node in ast.walk(ast.parse(source))]
    used = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "prpn"
    }
    assert set(prpn.__all__) - used == set()


def functions() -> list[tuple[str, Any]]:
    """Public functions, and public methods of public classes, that somebody calls with arguments."""
    found = []
    for name in prpn.__all__:
        thing = getattr(prpn, name)
        if inspect.isfunction(thing):
            found.append((name, thing))
            continue
        made_of_fields = hasattr(thing, "__dataclass_fields__") or issubclass(thing, Exception)
        for key, member in vars(thing).items():
            if key.startswith("_") and (key != "__init__" or made_of_fields):
                continue
            function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
            if inspect.isfunction(function):
                found.append((f"{name}.{key}", function))
    return found


@pytest.mark.parametrize(("name", "function"), functions(), ids=[name for name, _ in functions()])
def test_arguments_are_explained(name: str, function: Any) -> None:
    text = inspect.getdoc(function) or ""
    assert text, f"{name} says nothing"
    parameters = [each for each in inspect.signature(function).parameters if each not in ("self", "cls")]
    explained = re.findall(r"^    (\w+): ", text.partition("Args:\n")[2].partition("\n\n")[0], re.MULTILINE)
    assert explained == parameters, name
