"""A process that was forked from one whose threads had worked: it has none of them, and must not wait for any."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.kernels.native import needs_native_core

pytestmark = [
    needs_native_core,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here"),
]

LOSS = """
import torch
from prpn.kernels.loss import chunked_cross_entropy
from prpn.kernels.native import threads

torch.set_num_threads(2)
torch.manual_seed(1)
rows, weight, targets = torch.randn(400, 32, requires_grad=True), torch.randn(900, 32), torch.randint(900, (400,))

def work():
    loss = chunked_cross_entropy(rows, weight, torch.zeros(900), targets)
    (gradient,) = torch.autograd.grad(loss, rows)
    return torch.cat([loss.detach()[None], gradient.flatten()])

def same(one, other):
    return threads() == 1 and torch.allclose(one, other, rtol=1e-5, atol=1e-7)
"""
PARSE = """
import numpy as np
from prpn.kernels import parsing
from prpn.text.pieces import Piece
parsing.threads = lambda: 2
def whole(chunk, _): return [Piece(chunk, 0, len(chunk))]
text = parsing.TextWithTrees("brackets", whole, lambda words: [0 for _ in words], {}, [], lowercase=False, unknown=-1)

def work():
    ids, ends = text.read(b"the old man sat\\n" * 9000)
    return b"".join(text.write(np.arange(len(ids), dtype=np.float32), None, "paper"))

def same(one, other):
    return one == other
"""
FORK = """
import os, signal
before = work()
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if same(before, work()) else 3)
_, status = os.waitpid(child, 0)
raise SystemExit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.parametrize("program", [LOSS, PARSE], ids=["loss", "parse"])
def test_a_child_works_on_by_itself(program: str) -> None:
    environment = {**os.environ, "PRPN_KERNELS": "bf16", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", program + FORK], env=environment, timeout=120)
    assert done.returncode == 0


@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the sanitizer needs more addresses than are left here")
def test_where_no_thread_can_be_made_the_caller_does_all() -> None:
    """No thread finds room for its stack."""
    limits = 'ulimit -s 1073741824 && ulimit -v 16777216 && exec "$@"'
    program = """
import threading
try:
    threading.Thread(target=print).start()
except RuntimeError:
    assert same(work(), work()) and len(work()) > 9000
else:
    raise SystemExit(9)
"""
    words = ["sh", "-c", limits, "sh", sys.executable, "-c", PARSE + program]
    done = subprocess.run(words, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, timeout=120)
    if done.returncode == 9:
        pytest.skip("threads can be made all the same")
    assert done.returncode == 0
