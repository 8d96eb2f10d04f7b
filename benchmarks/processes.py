"""Commands that are measured in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parent.parent


def run_python(
    words: Sequence[str], *, text: str = "", out: IO[str] | None = None, environment: Mapping[str, str] | None = None
) -> tuple[str, str]:
    """Run Python with these words and `text` to read; what it wrote to standard output (unless to `out`) and error."""
    done = subprocess.run(
        [sys.executable, *words],
        input=text,
        stdout=out or subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
    )
    if done.returncode != 0:
        sys.exit(f"python {' '.join(words)}\nfailed:\n{done.stderr}")
    return done.stdout or "", done.stderr
