"""Where a figure comes from: the command, the code, the data and the machine behind it."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prpn.text.files import STANDARD_INPUT, legible, read_blocks


def command() -> str:
    """The command as it was typed."""
    return legible(shlex.join(["prpn", *sys.argv[1:]]))


def commit() -> str | None:
    """The commit of the source this runs from, with `+` when the source was changed since; None outside a checkout."""
    source = Path(__file__).parent

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=source, capture_output=True, text=True, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", __file__)  # else an environment inside some other project's checkout
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", str(source.parent)) else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def machine() -> dict[str, Any]:
    """What this runs on, as far as it matters to speed and to repeating it."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def checksum(paths: Iterable[str | Path]) -> str | None:
    """SHA-256 of the decompressed bytes of files, one after the other; None for standard input, which is gone."""
    digest = hashlib.sha256()
    for path in paths:
        if str(path) == STANDARD_INPUT:
            return None
        for block in read_blocks(path):
            digest.update(block)
    return digest.hexdigest()


def _processor() -> str:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
