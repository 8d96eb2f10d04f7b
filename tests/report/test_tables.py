"""The README's table is what results/ says."""

from pathlib import Path

from prpn.report.tables import BEGIN, END, results_table, with_results

REPOSITORY = Path(__file__).parents[2]


def test_readme_shows_the_recorded_runs() -> None:
    assert any((REPOSITORY / "results").glob("*.json"))
    page = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert page == with_results(page, results_table(REPOSITORY / "results"))


def test_only_the_part_between_the_markers_changes() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert with_results(page, "new") == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
