"""Which kernels run: what the environment asks for, and what happens where there is no native core."""

from __future__ import annotations

import ctypes
import logging
import shutil
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from prpn import kernels
from prpn.errors import ConfigError
from prpn.kernels import native, structs
from prpn.kernels.convolution import convolve
from prpn.kernels.products import linear
from tests.kernels.native import needs_native_core

MACHINE, runs_here = native._path("machine"), native.runs_here


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What was found once is forgotten, before and after."""
    forget(monkeypatch)
    yield
    native._find.cache_clear()


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    native._find.cache_clear()
    monkeypatch.setattr(kernels, "_complaint", threading.Lock())


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
    monkeypatch.setenv("PRPN_KERNELS", "off")
    assert not kernels.native_reads(torch.zeros(1))


def test_without_a_library_one_line_says_so(
    built: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging.getLogger("prpn"), "handlers", [])  # the command's, where it was called here before
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: kernels.in_use(), range(50))) == {"off"}
    assert kernels.described() == "PyTorch"
    message = (
        "no native core was built (is GCC, a C++ compiler, installed?); PyTorch and numpy do the work, more slowly"
    )
    assert caplog.record_tuples == [("prpn", logging.WARNING, message)]
    assert capsys.readouterr() == ("", "")
    with pytest.raises(RuntimeError, match="no native core"):
        native.required_library()


@needs_native_core
def test_a_broken_library_is_no_library(
    built: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (built / f"_native_avx2{native.EXTENSION_SUFFIXES[0]}").write_bytes(b"not a library")
    assert kernels.in_use() == "off"
    assert "does not load: _native_machine, which knows the processor, was not built" in caplog.text
    forget(monkeypatch)
    caplog.clear()
    shutil.copy(MACHINE, built)
    assert kernels.in_use() == "off"
    (message,) = caplog.messages
    assert "the native core does not load" in message
    assert "_native_avx2" in message
    assert "\n" not in message


def test_nothing_is_said_when_nothing_native_was_asked_for(
    built: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PRPN_KERNELS", "off")
    assert kernels.in_use() == "off"
    assert not caplog.records


@needs_native_core
def test_a_processor_without_the_instructions_is_not_shown_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading a library may run what it holds, so the machine is asked about, and nothing but its library loaded."""
    asked, loaded, library = [], [], ctypes.CDLL
    monkeypatch.setattr(native, "runs_here", lambda name: bool(runs_here(name) and asked.append(name)))
    monkeypatch.setattr(ctypes, "CDLL", lambda path: loaded.append(Path(path).name.split(".")[0]) or library(path))
    assert native.library() is None
    assert "needs other instructions" in native.complaint()
    assert asked == [name for name in native.INSTRUCTION_SETS if name in asked]
    assert asked
    assert set(loaded) == {"_native_machine"}


@needs_native_core
def test_the_machine_knows_the_instruction_sets_and_no_others() -> None:
    assert [native.runs_here(name) for name in native.INSTRUCTION_SETS].count(True) >= 1
    flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")).split()
    assert native.runs_here("avx2") == {"avx2", "fma"}.issubset(flags)
    assert native.runs_here("avx512bf16") == {"avx512f", "avx512bw", "avx512vl", "avx512_bf16"}.issubset(flags)
    with pytest.raises(ValueError, match="unknown instruction set: sse"):
        native.runs_here("sse")


@needs_native_core
def test_the_library_that_is_asked_first_uses_no_wide_registers() -> None:
    if (objdump := shutil.which("objdump")) is None:
        pytest.skip("no objdump here")
    assert MACHINE is not None
    code = subprocess.run([objdump, "-d", MACHINE], capture_output=True, text=True, check=True).stdout
    assert "%rax" in code
    assert "%ymm" not in code
    assert "%zmm" not in code


@needs_native_core
@pytest.mark.parametrize("name", structs.MIRRORED)
@pytest.mark.parametrize("wrong", ["longer", "shorter"])
def test_a_core_with_other_structs_is_refused(name: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = structs.MIRRORED[name]
    fields = [*mirror._fields_, ("new", ctypes.c_int64)] if wrong == "longer" else mirror._fields_[1:]
    changed = type(mirror.__name__, (ctypes.Structure,), {"_fields_": fields})
    monkeypatch.delenv("PRPN_KERNELS", raising=False)
    monkeypatch.setitem(structs.MIRRORED, name, changed)
    assert kernels.in_use() == "off"
    assert f"has another struct {mirror.__name__} than Python; install prpn again" in native.complaint()


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
    if path is None or not runs_here(name):
        pytest.skip(f"{name} does not run here")
    assert all(hasattr(ctypes.CDLL(str(path)), function) for function in native._SIGNATURES)


@needs_native_core
def test_threads_learn_each_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRPN_KERNELS", raising=False)
    monkeypatch.setattr(native, "multiplies_bf16", lambda: True)
    all_in = threading.Barrier(2, timeout=60)

    def learner() -> list[str]:
        with kernels.learning():
            all_in.wait()
            found = [kernels.in_use()]
            all_in.wait()
            found.append(kernels.in_use())
        return found

    def reader() -> list[str]:
        all_in.wait()
        found = [kernels.in_use()]
        with kernels.learning():
            found.append(kernels.in_use())
        all_in.wait()
        return [*found, kernels.in_use()]

    with ThreadPoolExecutor(2) as pool:
        learns, reads = pool.submit(learner), pool.submit(reader)
        assert learns.result() == ["bf16", "bf16"]
        assert reads.result() == ["fp32", "bf16", "fp32"]


@needs_native_core
def test_backward_is_as_forward_in_whichever_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRPN_KERNELS", raising=False)
    monkeypatch.setattr(native, "multiplies_bf16", lambda: True)
    torch.manual_seed(1)
    x, weight = torch.randn(9, 40, requires_grad=True), torch.randn(30, 40, requires_grad=True)
    tape, taps = torch.randn(12, 3, 8, requires_grad=True), torch.randn(5, 8, 4, requires_grad=True)
    with kernels.learning():
        y = linear(x, weight).square().sum() + convolve(tape, taps, torch.zeros(5)).square().sum()
        here = torch.autograd.grad(y, (x, weight, tape, taps), retain_graph=True)
    with ThreadPoolExecutor(1) as pool:
        there = pool.submit(torch.autograd.grad, y, (x, weight, tape, taps)).result()
    assert all(map(torch.equal, here, there))
