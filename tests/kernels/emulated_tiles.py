"""A pytest plugin: the native core built for AMX, on processors without AMX too: tile instructions are emulated.

    pytest -p no:faulthandler -p tests.kernels.emulated_tiles tests/kernels

`faulthandler` would take the signal that an unknown instruction raises.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

import pytest

from prpn.kernels import native

SOURCE = Path(__file__).with_name("tile_emulator.cpp")


def _emulator() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "tile_emulator.so"
        subprocess.run(["g++", "-std=c++17", "-O2", "-Wall", "-shared", "-fPIC", SOURCE, "-o", library], check=True)
        return ctypes.CDLL(str(library))


emulator = _emulator()
assert emulator.install() == 0
has_tiles = native.runs_here("amx")
native.runs_here = lambda name: True


def pytest_configure(config: pytest.Config) -> None:
    if config.pluginmanager.has_plugin("faulthandler"):
        raise pytest.UsageError("say -p no:faulthandler: it takes the signals of unknown instructions")
    assert native.instruction_set() == "amx", "the library for AMX was not built"


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not has_tiles and not emulator.instructions_emulated():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"{emulator.instructions_emulated():,} instructions on tiles were emulated")
