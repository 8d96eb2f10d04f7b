"""The three standard streams: sound from the start, and what is said when one of them fails.

A stream that is closed (`<&-`, `>&-`, `2>&-`) is given something that fails when it is used, so that
no file which is opened later takes its place; messages that nobody can take are lost. Output that
nobody reads any more (`| head -1`) ends the command quietly, with the status of one that SIGPIPE ends.
"""

from __future__ import annotations

import codecs
import errno
import io
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

BROKEN_PIPE = 141
"""128 and the number of SIGPIPE: what a shell sees of other tools."""
CANNOT_BE_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE, errno.EBADF)
"""What goes wrong with standard output, which has no name."""


def make_sound() -> None:
    """Put something where a standard stream is closed, and log to standard error."""
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(os.open(os.devnull, os.O_WRONLY), "r")))
    if sys.stdout is None:
        sys.stdout = _writer(io.FileIO(os.open(os.devnull, os.O_RDONLY), "w"))
    if sys.stderr is None:
        sys.stderr = _writer(io.FileIO(os.open(os.devnull, os.O_WRONLY), "w"))
    elif (own := sys.__stderr__) is not None and sys.stderr is own:
        sys.stderr = _writer(_Messages(own.fileno(), "w", closefd=False), own.encoding)
    logger = logging.getLogger("prpn")
    if not any(isinstance(handler, _Log) for handler in logger.handlers):
        logger.addHandler(_Log())


@contextmanager
def failures_told() -> Iterator[None]:
    """End with one line, or quietly, where standard output cannot be written."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # a disk that is full is noticed here, not when nobody listens any more
    except SystemExit as exit_:
        if isinstance(exit_.__context__, BrokenPipeError):  # typer and rich leave so
            _end(BROKEN_PIPE)
        raise
    except BrokenPipeError:
        _end(BROKEN_PIPE)
    except UnicodeEncodeError as error:
        if codecs.lookup(error.encoding) != codecs.lookup(sys.stdout.encoding):
            raise
        cause = f"its encoding, {error.encoding}, has no {error.object[error.start]!a}"
        tell(f"standard output: {cause}; set PYTHONIOENCODING=utf-8")
        _end(1)
    except OSError as error:
        if error.filename is None and error.errno not in CANNOT_BE_WRITTEN:
            raise
        why = "is closed" if error.errno == errno.EBADF else error.strerror
        tell(f"{error.filename or 'standard output'}: {why}")
        _end(1)


def tell(message: object) -> None:
    """Write a line to standard error."""
    print(f"prpn: {message}", file=sys.stderr, flush=True)


class _Log(logging.Handler):
    """Log records as the command's own messages."""

    def emit(self, record: logging.LogRecord) -> None:
        tell(record.getMessage())


class _Messages(io.FileIO):
    """Standard error, full or not: what it does not take is lost, and the work goes on."""

    def write(self, data: bytes) -> int:  # type: ignore[override]
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError:
            return len(data)


def _writer(file: io.FileIO, encoding: str | None = None) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(file), encoding, errors="backslashreplace", line_buffering=True)


def _end(status: int) -> None:
    """What a stream did not take, it shall not be given again at the end."""
    for stream in (sys.stdout, sys.stderr) if status == BROKEN_PIPE else (sys.stdout,):
        with suppress(io.UnsupportedOperation):  # it is no file
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(status)
