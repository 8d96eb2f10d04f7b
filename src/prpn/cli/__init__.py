"""The command `prpn`: one function per verb.

Results go to standard output, progress and messages to standard error; `--json` prints one JSON object and nothing
else. Exit status 0: done, 1: the job failed, 2: wrong use. Whatever needs torch is imported by the verb that needs it.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from prpn import __version__
from prpn.cli import boundaries, distill, judge, language, pack, perplexity, recipe, reproduce, temperature, trees  # noqa: F401 - their verbs join the command
from prpn.cli.options import app
from prpn.cli.streams import failures_told, make_sound, tell
from prpn.errors import ConfigError, PrpnError


def _version(wanted: bool) -> None:
    if wanted:
        print(f"prpn {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """A language model that discovers the syntax of the text it reads, without a treebank."""


def main() -> None:
    """Run the command; errors of the input, and of what is written to, are one line."""
    make_sound()
    with failures_told():
        try:
            app()
        except PrpnError as error:
            tell(error)
            sys.exit(2 if isinstance(error, ConfigError) else 1)
