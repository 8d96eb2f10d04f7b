"""The README's tables are what results/ says."""

import json
from pathlib import Path

from prpn.report.tables import trees_table, with_tables

REPOSITORY = Path(__file__).parents[2]
FIGURES = {"f1": 12.345, "precision": 1.0, "recall": 2.0, "low": 11.0, "high": 13.06}


def test_readme_shows_the_records() -> None:
    assert any((REPOSITORY / "results").glob("*.json"))
    page = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert page == with_tables(page, REPOSITORY / "results")


def test_only_the_parts_between_the_markers_change(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(
        json.dumps(
            {
                "validation": {"perplexity": 100.5, "bits_per_character": 1.25},
                "steps": 10,
                "seconds": 90,
                "peak_memory_gib": 0.5,
                "finished": "budget spent",
                "recipe": {"training": {"seed": 7}},
            }
        )
    )
    (tmp_path / "wsj.json").write_text(
        json.dumps(
            {
                "builder": "paper",
                "systems": {name: {"kim": FIGURES} for name in ("left", "right", "random-distances", "mine")},
                "differences": {"mine": {}},
            }
        )
    )
    page = (
        "before\n<!-- results: begin -->\nold\n<!-- results: end -->\n<!-- trees: begin --><!-- trees: end -->\nafter"
    )
    made = with_tables(page, tmp_path).splitlines()
    assert (made[0], made[-1]) == ("before", "after")
    assert [line for line in made if line.startswith("| [run]")] == [
        "| [run](results/run.json) | 100.50 | 1.2500 | 10 | 1.5 min | 0.50 GiB | budget spent | 7 |"
    ]
    rows = [line.split(" | ") for line in made if line.startswith("| [wsj]")]
    assert [row[1:] for row in rows] == [
        ["paper", name, "12.35 (11.0–13.1) |"] for name in ("right", "random-distances", "mine")
    ]
    assert with_tables("no marker", tmp_path) == "no marker"


def test_no_evaluation_is_an_empty_table(tmp_path: Path) -> None:
    assert trees_table(tmp_path).count("\n") == 1
