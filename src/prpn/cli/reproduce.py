"""The verb reproduce: the paper's tables with ours beside them, and any of ours again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from prpn.cli.completion import experiments
from prpn.cli.options import Device, Json, app, print_json

if TYPE_CHECKING:
    from prpn.reproduction.experiments import Experiment
    from prpn.reproduction.files import FoundFile
    from prpn.reproduction.recorded import Recorded


class _WithExperiments(TyperCommand):
    """Help that ends with the experiments, or with the one that was named, and how long they took."""

    _words: tuple[str, ...] = ()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        self._words = tuple(args)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from prpn.report.reproduction import time_words
        from prpn.reproduction.experiments import load_experiments
        from prpn.reproduction.recorded import read_recorded

        known, records = load_experiments(), read_recorded()
        named = [name for name in known if name in self._words] or list(known)
        lines = (
            f"- `{name}`: {known[name].sentence} Budget: {known[name].budget}. "
            f"Took: {time_words(records[name].seconds)}."
            for name in named
        )
        self.epilog = "\n\n".join(lines)
        super().format_help(ctx, formatter)


@app.command(cls=_WithExperiments)
def reproduce(
    name: Annotated[
        str | None, typer.Argument(autocompletion=experiments, help="An experiment; without it the tables are listed.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where the files it needs are; they are found by name, at any depth."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to put a folder of the models it trains.")] = Path(
        "runs/reproduce"
    ),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what an earlier call left in --out.")] = False,
    seed: Annotated[int | None, typer.Option(help="Train with this seed alone (default: the experiment's).")] = None,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """List the paper's tables with every cited row and ours beside them, or run one of ours again.

    With a NAME the experiment is trained and scored as it was recorded, then compared figure by figure: recorded, now,
    difference, and the difference that seeds and rounding may make. The exit status is 1 if one is larger.

    Example: `prpn reproduce ngram-word --data corpora/`
    """
    from prpn.reproduction.experiments import experiment_named, load_experiments
    from prpn.reproduction.recorded import Recorded, read_recorded

    known, records = load_experiments(), read_recorded()
    if name is None:
        from prpn.report.reproduction import print_tables, tables_json
        from prpn.reproduction.paper import load_tables

        if as_json:
            print_json(tables_json(load_tables(), known, records))
        else:
            print_tables(load_tables(), known, records)
        return
    experiment, recorded = experiment_named(name, known), records.get(name, Recorded())
    if _run(experiment, recorded, data, out, resume, seed, device, as_json) is False:
        raise typer.Exit(1)


def _run(
    experiment: Experiment,
    recorded: Recorded,
    data: Path | None,
    out: Path,
    resume: bool,
    seed: int | None,
    device: str,
    as_json: bool,
) -> bool | None:
    """Run, print, and say whether every recorded figure was repeated; None where none is recorded."""
    from prpn import provenance
    from prpn.report.reproduction import print_comparison, time_words
    from prpn.reproduction.comparison import Comparison
    from prpn.reproduction.files import find_files

    files = find_files(experiment, data, recorded.data)
    if not as_json:
        print(f"{experiment.sentence} Took when recorded: {time_words(recorded.seconds)}.", file=sys.stderr)
        for role, file in files.items():
            print(f"{role}: {_names(file)}: {file.verdict}", file=sys.stderr)

    from prpn.reproduction.run import Options, run_experiment
    from prpn.training.process import own_process
    from prpn.training.record import machine

    seeds = experiment.seeds if seed is None else (seed,)
    with own_process() as stop:
        outcome = run_experiment(experiment, files, Options(out, seeds, resume, device, as_json, stop))
    compared = [
        Comparison(figure, outcome.figures[figure.label], recorded.figures.get(figure.label, {}))
        for figure in experiment.figures
    ]
    verdicts = [each.within for each in compared if each.within is not None]
    repeated = all(verdicts) if verdicts else None
    if not as_json:
        print_comparison(compared)
        return repeated
    print_json(
        {
            "experiment": experiment.name,
            "command": provenance.command(),
            "commit": provenance.commit(),
            "data": {
                role: {"file": _names(file), "sha256": file.sha256, "as_recorded": file.as_recorded}
                for role, file in files.items()
            },
            "runs": outcome.runs,
            "figures": {each.figure.label: each.to_json() for each in compared},
            "repeated": repeated,
            "machine": machine(),
        }
    )
    return repeated


def _names(file: FoundFile) -> str:
    names = [path.name for path in file.paths]
    return ", ".join(names) if len(names) < 3 else f"{names[0]} to {names[-1]}"
