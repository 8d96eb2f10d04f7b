"""A process that trains: freed memory is kept, and numbers too small to matter are zero in all threads."""

import platform
import subprocess
import sys

import pytest

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


def test_denormal_numbers_are_zero_in_all_threads_for_a_while() -> None:
    program = """
import torch
from prpn.training.process import denormals_are_zero
torch.set_num_threads(2)
with denormals_are_zero():
    print((torch.full((1_000_000,), 1e-38) * 0.1).count_nonzero().item())
print((torch.full((1,), 1e-38) * 0.1).count_nonzero().item())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n1\n"
