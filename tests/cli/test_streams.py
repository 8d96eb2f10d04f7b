"""Standard streams that are closed, full, or that nobody reads."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from prpn.cli.options import VERBS
from prpn.cli.streams import BROKEN_PIPE

PRPN = f"'{sys.executable}' -m prpn"
WORDS = ("--help", "--version", "info --json", "parse", *(f"{verb} --help" for verb in ("train", "reproduce")))
CLOSED = [" ".join(how) for how in product(("", "<&-"), ("", ">&-"), ("", "2>&-")) if any(how)]


def shell(line: str, stdin: bytes = b"the old man\n") -> tuple[int, bytes, bytes]:
    environment = {**os.environ, "PYTHONFAULTHANDLER": "", "COLUMNS": "80", "PRPN_KERNELS": "off"}
    done = subprocess.run(["bash", "-c", line], input=stdin, capture_output=True, env=environment, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("how", CLOSED)
@pytest.mark.parametrize("words", WORDS)
def test_closed_streams(words: str, how: str) -> None:
    status, out, err = shell(f"{PRPN} {words} {how}")
    reads_nothing = words == "parse" and "<&-" in how
    if ">&-" in how.split() or reads_nothing:
        assert status == 1
        assert out == b""
        named = b"standard input" if reads_nothing else b"standard output"
        assert err == (b"" if "2>&-" in how else err)
        assert err == b"" or (err.startswith(b"prpn: " + named + b": is closed") and err.count(b"\n") == 1)
        assert err or "2>&-" in how
    else:
        assert (status, err) == (0, b"")
        assert out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("words", WORDS)
def test_full_streams(words: str) -> None:
    full = b"prpn: standard output: No space left on device\n"
    assert shell(f"{PRPN} {words} > /dev/full") == (1, b"", full)
    status, out, err = shell(f"{PRPN} {words} 2> /dev/full")
    assert (status, err) == (0, b"")
    assert out
    assert shell(f"{PRPN} {words} > /dev/full 2>&1") == (1, b"", b"")


def test_every_verb_says_that_its_help_was_not_written() -> None:
    for verb in VERBS:
        assert shell(f"{PRPN} {verb} --help >&-") == (1, b"", b"prpn: standard output: is closed\n")


def test_a_wrong_use_stays_one_whoever_listens() -> None:
    for how in ("", "2>&-", "2>/dev/full", ">&-", "<&- >&- 2>&-"):
        assert shell(f"{PRPN} nonsense {how}")[0] == 2


@pytest.mark.parametrize("words", ["parse", "--help", "info", "reproduce"])
def test_output_that_nobody_reads_any_more(words: str) -> None:
    text = b"the old man sat\n" * 100_000
    status, out, err = shell(f"set -o pipefail; {PRPN} {words} | head -1", text)
    assert (status, err) in ((BROKEN_PIPE, b""), (0, b""))
    assert out.count(b"\n") == 1
    if words == "parse":
        assert status == BROKEN_PIPE
