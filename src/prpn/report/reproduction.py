"""The paper's tables with our figures beside them, and an experiment that was run again: in the terminal, as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.table import Table as Grid
from rich.text import Text

from prpn.report.console import console_for_tables
from prpn.reproduction.comparison import Comparison
from prpn.reproduction.experiments import Experiment, Figure, beside
from prpn.reproduction.paper import DECIMALS, MEASURE_NAMES, Measure, Table
from prpn.reproduction.recorded import Recorded

NOT_RECORDED = "not recorded yet"

Known = Mapping[str, Experiment]
Records = Mapping[str, Recorded]


def print_tables(tables: Mapping[str, Table], known: Known, records: Records) -> None:
    """Print every table, every row with its source and ours, then the experiments."""
    out = console_for_tables()
    for table in tables.values():
        out.print(Text(table.heading, style="bold"))
        for line in (f"{MEASURE_NAMES[table.measure]} on: {table.data}", f"protocol: {table.protocol}"):
            out.print(Text(line))
        out.print(_grid_of(table, known, records))
        for row in table.rows:
            if row.remark:
                out.print(Text(f"{row.system}: {row.remark}.", style="dim"))
        ours = dict.fromkeys(experiment.name for experiment, _ in beside(table.name, known.values()))
        for name in ours:
            out.print(Text(f"ours, {name}: {known[name].budget}.", style="dim"))
        out.print()
    out.print(Text("Beside none of the tables", style="bold"))
    grid = _grid("figure", "ours")
    for pair in beside("", known.values()):
        grid.add_row(Text(pair[1].label), Text(_ours([pair], records)))
    out.print(grid)
    out.print(Text("Experiments: `prpn reproduce NAME` runs one again and compares", style="bold"))
    grid = _grid("experiment", "what it is", "budget", "took")
    for experiment in known.values():
        took = time_words(records[experiment.name].seconds)
        grid.add_row(Text(experiment.name), Text(experiment.sentence), Text(experiment.budget), took)
    out.print(grid)


def print_comparison(comparisons: Sequence[Comparison]) -> None:
    """Print recorded, now, difference and verdict of each figure."""
    grid = _grid("figure", "recorded", "now", "difference", "allowed", "verdict")
    for each in comparisons:
        measure = each.figure.measure
        cells = (
            value_words(each.recorded, measure),
            value_words(each.now, measure),
            "" if each.difference is None else f"{each.difference:+.{DECIMALS[measure]}f}",
            "" if each.allowed is None else f"± {each.allowed:.{DECIMALS[measure]}f}",
        )
        grid.add_row(Text(each.figure.label), *cells, VERDICTS[each.within])
    console_for_tables().print(grid)


VERDICTS = {True: "repeated", False: "[bold red]not repeated[/bold red]", None: "nothing to compare with"}


def tables_json(tables: Mapping[str, Table], known: Known, records: Records) -> dict[str, Any]:
    """What `print_tables` prints, by the names that scripts read; null is not recorded yet."""
    listed = []
    for table in tables.values():
        ours = [
            {"experiment": experiment.name, **asdict(figure), "value": records[experiment.name].value(figure)}
            for experiment, figure in beside(table.name, known.values())
        ]
        listed.append(asdict(table) | {"ours": ours})
    experiments = {
        name: {
            "sentence": experiment.sentence,
            "table": experiment.table or None,
            "budget": experiment.budget,
            "command": experiment.command,
            "seeds": experiment.seeds,
            "files": {
                role: [name for part in (file, *file.then) for name in part.names or [part.embedded]]
                for role, file in experiment.files.items()
            },
            "figures": {figure.label: records[name].value(figure) for figure in experiment.figures},
            "seconds": records[name].seconds,
            "runs": records[name].runs,
            "data": records[name].data,
        }
        for name, experiment in known.items()
    }
    return {"tables": listed, "experiments": experiments}


def value_words(value: float | None, measure: Measure) -> str:
    """A figure of ours, or that there is none."""
    return NOT_RECORDED if value is None else f"{value:.{DECIMALS[measure]}f}"


def with_spread(recorded: Recorded, figure: Figure) -> str:
    """The mean over seeds ± their standard deviation."""
    words, spread = value_words(recorded.value(figure), figure.measure), recorded.spread(figure)
    return words if spread is None else f"{words} ± {value_words(spread, figure.measure)}"


def time_words(seconds: float | None) -> str:
    """How long something took, roughly."""
    if seconds is None:
        return NOT_RECORDED
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _grid_of(table: Table, known: Known, records: Records) -> Grid:
    grid = _grid("system", "value", "protocol", "source", "ours")
    figures = beside(table.name, known.values())
    for row in table.rows:
        ours = [pair for pair in figures if pair[1].row == row.system and not row.later]
        name = Text(f"later: {row.system}" if row.later else row.system)
        grid.add_row(name, str(row.value), row.protocol, Text(str(row.source)), Text(_ours(ours, records)))
    if others := [pair for pair in figures if not pair[1].row]:
        grid.add_section()
        for pair in others:
            grid.add_row(Text(pair[1].label), "", pair[1].protocol, "ours", Text(_ours([pair], records)))
    return grid


def _ours(pairs: Iterable[tuple[Experiment, Figure]], records: Records) -> str:
    return "\n".join(
        f"{value_words(records[experiment.name].value(figure), figure.measure)} ({experiment.name})"
        for experiment, figure in pairs
    )


def _grid(*headings: str) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    numbers = ("value", "recorded", "now", "difference", "allowed", "took")
    for heading in headings:
        grid.add_column(heading, justify="right" if heading in numbers else "left", overflow="fold")
    return grid
