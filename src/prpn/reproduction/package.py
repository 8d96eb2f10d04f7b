"""The data files of this package: tables.toml, experiments.toml and recorded.json."""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def data_file(name: str) -> Path:
    """Where a data file of this package is."""
    return Path(str(resources.files("prpn") / "reproduction" / name))


def read_data_file(name: str) -> str:
    """The text of a data file of this package."""
    return data_file(name).read_text(encoding="utf-8")
