"""Which kernels run: what the environment asks for, and what happens where there is no native core."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from prpn import kernels
from prpn.errors import ConfigError
from prpn.kernels import native
from tests.kernels.native import needs_native_core


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    """What was found once is forgotten, before and after."""
    remembered = (native._find, kernels._complain)
    for function in remembered:
        function.cache_clear()
    yield
    for function in remembered:
        function.cache_clear()


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in the place of the one with the libraries."""
    monkeypatch.setattr(native, "__file__", str(tmp_path / "native.py"))
    monkeypatch.delenv("PRPN_KERNELS", raising=False)
    return tmp_path


@needs_native_core
def test_the_environment_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRPN_KERNELS", raising=False)
    assert kernels.in_use() == "fp32"
    fast = native.instruction_set() in ("amx", "avx512bf16")
    note = ", learns in bf16" if fast else ""
    assert kernels.described() == f"native fp32 ({native.instruction_set()}{note})"
    with kernels.learning():
        assert kernels.in_use() == ("bf16" if fast else "fp32")
    assert kernels.in_use() == "fp32"
    for choice in ("autograd", "off", "fp32", "bf16"):
        monkeypatch.setenv("PRPN_KERNELS", choice)
        assert kernels.in_use() == choice
        with kernels.learning():
            assert kernels.in_use() == choice
    monkeypatch.setenv("PRPN_KERNELS", "cuda")
    with pytest.raises(ConfigError, match="PRPN_KERNELS=cuda: choose one of autograd, off, fp32, bf16"):
        kernels.in_use()


@needs_native_core
def test_the_native_core_reads_fp32_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRPN_KERNELS", "fp32")
    assert kernels.native_reads(torch.zeros(1))
    assert not kernels.native_reads(torch.zeros(1, dtype=torch.float64))
    assert not kernels.native_reads(torch.zeros(1, device="meta"))
    with pytest.raises(TypeError, match=r"cannot read torch\.float64"):
        native.address(torch.zeros(1, dtype=torch.float64))
    monkeypatch.setenv("PRPN_KERNELS", "off")
    assert not kernels.native_reads(torch.zeros(1))


def test_without_a_library_one_line_says_so(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kernels.in_use() == "off"
    assert kernels.in_use() == "off"
    assert kernels.described() == "PyTorch"
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "no native core was built (is GCC, a C++ compiler, installed?)" in message
    with pytest.raises(RuntimeError, match="no native core"):
        native.required_library()


def test_a_broken_library_is_no_library(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (built / f"_native_avx2{native.EXTENSION_SUFFIXES[0]}").write_bytes(b"not a library")
    assert kernels.in_use() == "off"
    message = capsys.readouterr().err
    assert "the native core does not load" in message
    assert message.count("\n") == 1


def test_nothing_is_said_when_nothing_native_was_asked_for(
    built: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PRPN_KERNELS", "off")
    assert kernels.in_use() == "off"
    assert capsys.readouterr().err == ""


@needs_native_core
def test_a_processor_without_the_instructions_gets_the_next_library(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Library:
        """Stands for a library that was built for another processor."""

        def __init__(self, path: str) -> None:
            asked.append(Path(path).name.split(".")[0])

        def prpn_runs_here(self) -> int:
            return 0

    monkeypatch.setattr(ctypes, "CDLL", Library)
    assert native.library() is None
    assert "needs other instructions" in native.complaint()
    order = [f"_native_{name}" for name in native.INSTRUCTION_SETS]
    assert asked == [name for name in order if name in asked]
    assert asked


@needs_native_core
def test_wide_instructions_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRPN_INSTRUCTIONS", "avx2")
    assert native.instruction_set() == "avx2"
    native._find.cache_clear()
    monkeypatch.setenv("PRPN_INSTRUCTIONS", "sse")
    with pytest.raises(ConfigError, match="PRPN_INSTRUCTIONS=sse: choose one of amx, avx512bf16, avx512, avx2"):
        native.instruction_set()


@needs_native_core
@pytest.mark.parametrize("name", native.INSTRUCTION_SETS)
def test_every_library_that_runs_here_has_every_function(name: str) -> None:
    path = native._path(name)
    if path is None or not ctypes.CDLL(str(path)).prpn_runs_here():
        pytest.skip(f"{name} does not run here")
    assert all(hasattr(ctypes.CDLL(str(path)), function) for function in native._SIGNATURES)
