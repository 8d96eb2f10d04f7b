"""What the shell is offered."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from prpn.cli.options import VERBS
from prpn.config import recipe_names
from prpn.trees.protocols import PROTOCOLS


def offered(line: str) -> list[str]:
    """What bash would be given; the word that is being typed is the last."""
    words = line.split(" ")
    typed = {"_PRPN_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    program = (
        "import sys\nfrom prpn.cli import main\nsys.argv = ['prpn']\n"
        "try: main()\nfinally: assert 'torch' not in sys.modules"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | typed, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("prpn ", VERBS),
        ("prpn pa", ("parse", "pack")),
        ("prpn train ", recipe_names()),
        ("prpn train quick-w", ["quick-word"]),
        ("prpn train quick-word ", []),
        ("prpn info e", ["english"]),
        ("prpn parse --model e", ["english"]),
        ("prpn parse --model ./e", []),
        ("prpn parse --builder u", ["unbiased"]),
        ("prpn evaluate x --protocol ", PROTOCOLS),
        ("prpn reproduce ngram-w", ["ngram-word"]),
    ],
)
def test_names_are_offered(line: str, words: list[str]) -> None:
    assert set(words) <= set(offered(line))
    if not line.endswith(" "):
        assert set(offered(line)) == set(words)
