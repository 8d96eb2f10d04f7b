"""A file of sentences into a file of trees."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from prpn.config import Builder
from prpn.errors import InputError
from prpn.parsing.text import parse_text
from prpn.text.atomic import replacing

if TYPE_CHECKING:
    from prpn.kernels.parsing import Format
    from prpn.parsing.parser import Parser
    from prpn.text.corpus import Progress


@dataclass
class FileCounts:
    """How many lines a file had, and those that are not text, whose trees are empty."""

    lines: int = 0
    bad: list[InputError] = field(default_factory=list)


def parse_file(
    parser: Parser,
    path: str | Path,
    out: str | Path,
    form: Format,
    builder: Builder | None,
    *,
    tokenized: bool,
    strict: bool,
    progress: Progress | None,
) -> FileCounts:
    """Parse a file into another, which gets its name once it is complete."""
    counts = FileCounts()
    try:
        with replacing(Path(out)) as file:
            for lines, trees, error in parse_text(parser, str(path), form, builder, tokenized=tokenized):
                if error is not None:
                    if strict:
                        raise error
                    counts.bad.append(error)
                file.writelines(trees)
                counts.lines += lines
                if progress is not None:
                    progress(lines)
    except OSError as error:
        raise InputError(str(out), f"cannot be written ({error.strerror or error})", "choose another file") from None
    return counts
