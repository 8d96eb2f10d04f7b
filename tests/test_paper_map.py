"""docs/paper.md names code that exists, all equations, and the numbers that the code cites."""

import ast
import dataclasses
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from prpn.config import SECTIONS, load_recipe, recipe_names

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "prpn"
TEXT = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
EQUATIONS = 22
REFERENCE = re.compile(r"`([\w/]+\.py):([\w.]+)`")
CITATION = re.compile(r"\beq\. (\d+(?:(?:, | and | to )\d+)*)")


def section(title: str) -> str:
    return TEXT.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def rows(title: str) -> list[list[str]]:
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def location(path: str) -> Path:
    return ROOT / path if path.startswith("tests/") else PACKAGE / path


def names_in(body: list[ast.stmt], prefix: str = "") -> set[str]:
    """Dotted names of the functions, classes, methods and fields that a body defines."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(prefix + node.name)
            if isinstance(node, ast.ClassDef):
                found |= names_in(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(prefix + node.target.id)
    return found


@cache
def defined(path: Path) -> set[str]:
    return names_in(ast.parse(path.read_text(encoding="utf-8")).body)


def equations() -> dict[int, str]:
    """What stands in the code column of each equation."""
    return {int(number): code for number, _, code in rows("Equations") if number.isdecimal()}


@pytest.mark.parametrize(("path", "name"), sorted(set(REFERENCE.findall(TEXT))))
def test_code_that_the_map_names_exists(path: str, name: str) -> None:
    assert location(path).is_file()
    assert name in defined(location(path))


def test_every_equation_is_there_once_in_order_and_has_code() -> None:
    numbers = [int(row[0]) for row in rows("Equations") if row[0].isdecimal()]
    assert numbers == list(range(1, EQUATIONS + 1))
    assert all(REFERENCE.search(code) for code in equations().values())


def cited_equations() -> list[tuple[str, int]]:
    return [
        (path.relative_to(PACKAGE).as_posix(), int(number))
        for path in sorted(PACKAGE.rglob("*.py"))
        for citation in CITATION.findall(path.read_text(encoding="utf-8"))
        for number in re.findall(r"\d+", citation)
    ]


@pytest.mark.parametrize(("path", "number"), sorted(set(cited_equations())))
def test_equations_that_code_cites_lead_back_to_its_file(path: str, number: int) -> None:
    files = {file for file, _ in REFERENCE.findall(equations().get(number, ""))}
    assert path in files, f"{path} cites eq. {number}, which docs/paper.md places in {sorted(files) or 'no file'}"


def test_the_networks_cite_the_equations_they_hold() -> None:
    assert {path for path, _ in cited_equations()} >= {
        "model/attention.py", "model/parsing.py", "model/predict.py", "model/reading.py",
    }  # fmt: skip


def test_settings_that_the_map_names_exist() -> None:
    known = {f"{name}.{field.name}" for name, kind in SECTIONS.items() for field in dataclasses.fields(kind)}
    named = set(re.findall(rf"`(?:--set )?((?:{'|'.join(SECTIONS)})\.\w+)(?: ?=[^`]*)?`", TEXT))
    assert named <= known
    assert "model.flavour" in named


def test_ablations_are_configurations_that_differ() -> None:
    table = [row for row in rows("Ablations") if re.fullmatch(r"[\d.]+", row[1])]
    base = load_recipe("ptb-word")
    models = [base.override(re.findall(r"`--set ([^`]+)`", options)).model for *_, options in table]
    assert models[0] == base.model
    assert len(set(models)) == len(table) == 5


def test_every_recipe_is_mentioned() -> None:
    assert set(recipe_names()) <= set(re.findall(r"`([\w-]+)`", section("Recipes")))


def test_tables_are_whole() -> None:
    lines = TEXT.splitlines()
    for above, below in pairwise(lines):
        if above.startswith("|") and below.startswith("|"):
            assert above.count("|") == below.count("|"), below
