"""The tables are those of the paper, whole, and every row says where it comes from."""

from __future__ import annotations

import pytest

from prpn.reproduction.paper import load_tables
from prpn.trees.protocols import PROTOCOLS

TABLES = load_tables()
VALUES = {
    "ptb-char": [1.48, 1.46, 1.41, 1.39, 1.37, 1.32, 1.27, 1.27, 1.24, 1.23, 1.202],
    "ptb-word": [92.0, 78.4, 78.9, 78.9, 70.9, 72.1, 68.5, 65.4, 62.4, 58.3, 61.98],
    "ablation": [61.98, 64.42, 64.63, 63.65, 65.81],
    "text8-word": [156, 161, 147, 121, 99.9, 81.64],
    "wsj10": [28.7, 34.7, 48.2, 61.7, 71.9, 77.6, 82.9, 70.02, 88.1],
}
"""As printed, from top to bottom."""


def test_all_tables_are_there() -> None:
    assert [table.number for table in TABLES.values()] == [1, 2, 3, 4, 5, 0]
    assert [*VALUES, "wsj23"] == list(TABLES)


@pytest.mark.parametrize("name", VALUES)
def test_rows_as_printed(name: str) -> None:
    assert [row.value for row in TABLES[name].rows if not row.later] == VALUES[name]


@pytest.mark.parametrize("name", TABLES)
def test_every_row_has_a_source(name: str) -> None:
    table = TABLES[name]
    assert table.title
    assert table.data
    assert table.protocol
    for row in table.rows:
        assert row.source.authors
        assert row.source.title
        assert 1990 < row.source.year < 2030
        assert row.later or row.source.year <= 2018
        assert str(row.source.year) in str(row.source)
    assert len({row.system for row in table.rows}) == len(table.rows)


def test_rows_of_trees_name_their_scorer() -> None:
    for table in TABLES.values():
        for row in table.rows:
            assert (row.protocol in PROTOCOLS) == (table.measure == "f1"), row.system


def test_table_5_has_two_scorers() -> None:
    by_protocol = {row.system: row.protocol for row in TABLES["wsj10"].rows if not row.later}
    assert by_protocol.pop("PRPN") == "released"
    assert set(by_protocol.values()) == {"klein"}


def test_later_figures_are_marked() -> None:
    later = {row.value for table in TABLES.values() for row in table.rows if row.later}
    assert {60.97, 57.3, 56.2, 70.5, 62.2, 47.3, 57.7} <= later
