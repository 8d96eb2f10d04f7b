"""A process that trains: freed memory is kept, and numbers too small to matter are zero in all threads."""

import gc
import os
import platform
import random
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from prpn.training.process import in_own_thread
from prpn.training.signals import StopRequest

from .tiny import run, write_text

MEASURE = """
import resource, torch
from prpn.config import ModelConfig
from prpn.model import PRPN
from prpn.training.process import keep_freed_memory
assert keep_freed_memory()
network, tokens = PRPN(ModelConfig(embedding=64, hidden=128), 500), torch.randint(500, (20, 64))
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    network.zero_grad()
    network.loss(network(tokens), tokens).backward()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
first = faults()
for _ in range(4): faults()
print(first, min(faults() for _ in range(5)))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_later_steps_touch_no_new_pages() -> None:
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    first, later = map(int, done.stdout.split())
    assert first > 1000
    assert later < 100


def glibc_version() -> tuple[int, ...]:
    name, version = platform.libc_ver()
    return tuple(map(int, version.split("."))) if name == "glibc" else ()


@pytest.mark.skipif(glibc_version() < (2, 36), reason="older versions of glibc map large blocks all the same")
def test_large_blocks_touch_no_new_pages_either() -> None:
    program = """
import resource, torch
from prpn.training.process import keep_freed_memory
assert keep_freed_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    one, other = torch.zeros(15_000_000), torch.zeros(30_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
first = faults()
for _ in range(4): faults()
print(first, min(faults() for _ in range(5)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    first, later = map(int, done.stdout.split())
    assert later < first / 20


def test_denormal_numbers_are_zero_in_a_runs_threads_alone() -> None:
    program = """
import torch
from prpn.training.process import in_own_thread
from prpn.training.signals import StopRequest
torch.set_num_threads(2)
def denormal(): return (torch.full((1_000_000,), 1e-38) * 0.1).count_nonzero().item()
before = denormal()
print(before, in_own_thread(denormal, StopRequest()), denormal())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "1000000 0 1000000\n"


def test_a_run_leaves_the_process_as_it_was(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Generators, signals, the garbage collector, rounding, warnings, standard streams: all are the caller's."""
    text = write_text(tmp_path / "text.txt")

    def state() -> list[Any]:
        handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
        denormal = (torch.full((100_000,), 1e-38) * 0.1).count_nonzero().item()
        generators = [torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), random.getstate()]
        threads = [thread for thread in threading.enumerate() if thread.is_alive()]
        settings = [torch.get_num_threads(), torch.is_grad_enabled(), warnings.filters[:], dict(os.environ), Path.cwd()]
        return [handlers, denormal, generators, threads, settings, gc.get_freeze_count(), gc.isenabled()]

    torch.manual_seed(3)
    before = state()
    run(tmp_path / "run", text, "training.steps=3")
    assert state() == before
    assert capfd.readouterr() == ("", "")


def test_what_a_run_raises_reaches_the_caller() -> None:
    def work() -> None:
        raise LookupError("here")

    with pytest.raises(LookupError, match="here"):
        in_own_thread(work, StopRequest())
