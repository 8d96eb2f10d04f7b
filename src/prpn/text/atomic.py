"""Writing a file so that its name never stands for half a file.

The bytes go to a temporary file in the same folder, which takes the final name in one step once all are on disk. A
process that dies before leaves only the temporary file, which nothing ever reads.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write to; it becomes `path` when the block ends, and vanishes when the block fails."""
    # Not tempfile: its files are private to the user, while a model folder may be meant for others.
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
