"""That a library is left out by the build only where the compiler does not know its instructions."""

from __future__ import annotations

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

from prpn.kernels import native
from tests.kernels.native import needs_native_core

SETUP = Path(__file__).parents[2] / "setup.py"


def flags_in_setup() -> dict[str, list[str]]:
    """The compiler's flags for each instruction set, as the build has them."""
    statements = [node for node in ast.parse(SETUP.read_text()).body if isinstance(node, ast.Assign)]
    about = [node for node in statements if "INSTRUCTION_SETS" in ast.unparse(node.targets[0])]
    names: dict[str, dict[str, list[str]]] = {}
    exec("\n".join(ast.unparse(node) for node in about), names)
    return names["INSTRUCTION_SETS"]


def test_all_instruction_sets_are_built_for() -> None:
    assert set(flags_in_setup()) == set(native.INSTRUCTION_SETS)


@needs_native_core
@pytest.mark.parametrize("name", native.INSTRUCTION_SETS)
def test_what_the_compiler_knows_was_built(name: str, tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no compiler here")
    source = tmp_path / "empty.cpp"
    source.write_text("int nothing() { return 0; }\n")
    known = subprocess.run(
        [compiler, *flags_in_setup()[name], "-c", source, "-o", tmp_path / "empty.o"], capture_output=True
    )
    if known.returncode != 0:
        pytest.skip(f"the compiler does not know {name}")
    path = native._path(name)
    assert path is not None, f"_native_{name} was not built: its sources do not compile"
    missing = [function for function in native._SIGNATURES if function.encode() not in path.read_bytes()]
    assert not missing
