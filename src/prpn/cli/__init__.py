"""The command `prpn`: one function per verb.

Results go to standard output, progress and messages to standard error; `--json` prints one JSON object and nothing
else. Exit status 0: done, 1: the job failed, 2: wrong use. Whatever needs torch is imported by the verb that needs it.
"""

from __future__ import annotations

import codecs
import errno
import os
import sys
from typing import Annotated

import typer

from prpn import __version__
from prpn.cli import boundaries, distill, judge, language, pack, perplexity, reproduce, temperature, trees  # noqa: F401 - their verbs join the command
from prpn.cli.options import app
from prpn.errors import ConfigError, PrpnError

CANNOT_BE_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE)
"""What goes wrong with standard output, which has no name."""


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
    try:
        try:
            app()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # a disk that is full is noticed here, not when nobody listens any more
    except PrpnError as error:
        print(f"prpn: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ConfigError) else 1)
    except UnicodeEncodeError as error:
        if sys.stdout is None or codecs.lookup(error.encoding) != codecs.lookup(sys.stdout.encoding):
            raise
        cause = f"its encoding, {error.encoding}, has no {error.object[error.start]!a}"
        print(f"prpn: standard output: {cause}; set PYTHONIOENCODING=utf-8", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        if error.filename is None and error.errno not in CANNOT_BE_WRITTEN:
            raise
        _leave_unwritten()
        print(f"prpn: {error.filename or 'standard output'}: {error.strerror}", file=sys.stderr)
        sys.exit(1)


def _leave_unwritten() -> None:
    """What standard output did not take, it shall not be given again at the end."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
