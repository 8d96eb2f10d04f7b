"""The tables of the paper, every row as printed and with its source, and later figures on the same data."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any, Literal

from prpn.reproduction.package import read_data_file

Measure = Literal["perplexity", "bits_per_character", "f1"]
MEASURE_NAMES: dict[Measure, str] = {
    "perplexity": "perplexity",
    "bits_per_character": "bits per character",
    "f1": "F1",
}
DECIMALS: dict[Measure, int] = {"perplexity": 2, "bits_per_character": 4, "f1": 2}
"""With which figures of ours are written; those of others stay as they were printed."""


@dataclass(frozen=True)
class Source:
    """Where a figure was published."""

    authors: str
    year: int
    title: str

    def __str__(self) -> str:
        return f"{self.authors} {self.year}, {self.title}"


@dataclass(frozen=True)
class Row:
    """A published figure; `protocol` and `remark` where it was not measured as the others."""

    system: str
    value: float
    source: Source
    protocol: str = ""
    remark: str = ""
    later: bool = False
    """Whether it was published after the paper, which does not have it."""


@dataclass(frozen=True)
class Table:
    """A table of the paper; number 0: of later work alone."""

    name: str
    number: int
    title: str
    measure: Measure
    data: str
    protocol: str
    rows: tuple[Row, ...]

    @property
    def heading(self) -> str:
        """Number and title, as one refers to it."""
        return f"Table {self.number}. {self.title}" if self.number else f"After the paper. {self.title}"

    def row(self, system: str) -> Row:
        """The row of a system."""
        return next(row for row in self.rows if row.system == system)


def load_tables() -> dict[str, Table]:
    """Read all tables, by name, in the order of the paper."""
    values = tomllib.loads(read_data_file("tables.toml"))
    sources = {key: Source(**fields) for key, fields in values["sources"].items()}

    def row(fields: dict[str, Any]) -> Row:
        return Row(**fields | {"source": sources[fields["source"]]})

    return {
        name: Table(name=name, **fields | {"rows": tuple(map(row, fields["rows"]))})
        for name, fields in values["tables"].items()
    }
