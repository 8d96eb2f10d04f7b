"""kill -9, again and again at any moment: whatever is on disk is whole, and the run ends as if nothing had happened.

One process imports torch and forks a child for each attempt, so that many kills cost one start.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .tiny import differences, outcome, toml, write_text

ASSIGNMENTS = ("training.average=0.9", "training.epochs=4", "training.checkpoint_every=1", "training.evaluate_every=2")
KILLS = 5

KILLER = """
import os, random, signal, sys, time
from pathlib import Path
import torch._dynamo  # the optimiser asks for it: import it once, here, rather than in every child
from prpn.config import load_recipe
from prpn.training.checkpoint import read_tensors
from prpn.training.run import train

recipe, text, out, kills = load_recipe(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
checkpoint = out / "training" / "checkpoint.safetensors"
draw = random.Random(0)


def start(folder=out):
    child = os.fork()
    if child == 0:
        try:
            train(recipe, folder, texts=[text], resume=True, quiet=True)
        finally:
            os._exit(0 if sys.exc_info()[0] is None else 1)
    return child


def written():
    return checkpoint.stat().st_ino if checkpoint.exists() else None


for _ in range(kills):
    before, child = written(), start()
    while written() == before and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(0.001)
    time.sleep(draw.uniform(0, 0.1))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    for file in [checkpoint, out / "model.safetensors"]:
        if file.exists():
            read_tensors(file)
    print(read_tensors(checkpoint)[1]["position"]["step"], flush=True)
_, status = os.waitpid(start(), 0)
_, other = os.waitpid(start(out.with_name("whole")), 0)  # in a process like the others, with as many threads
sys.exit(os.WEXITSTATUS(status) or os.WEXITSTATUS(other))
"""


def test_killed_at_any_moment(tmp_path: Path) -> None:
    text, recipe = write_text(tmp_path / "text.txt"), toml(tmp_path / "tiny.toml", *ASSIGNMENTS)
    command = [sys.executable, "-c", KILLER, str(recipe), str(text), str(tmp_path / "run"), str(KILLS)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert finished.returncode == 0, finished.stderr
    steps = [int(line) for line in finished.stdout.split()]
    assert len(steps) == KILLS
    assert steps == sorted(steps)
    whole = outcome(tmp_path / "whole")
    assert steps[0] < whole["position"]["step"], "no kill came before the end: give the run more epochs"
    assert differences(outcome(tmp_path / "run"), whole) == []
    assert list(tmp_path.rglob("*.tmp")) == []
