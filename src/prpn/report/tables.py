"""Tables made from the records in results/, so that no number on a page is typed by hand.

    python -m prpn.report.tables PAGE… results     rewrites what stands between the markers, and recorded.json

A record with `systems` is an evaluation of trees, as `prpn evaluate --json` prints it; any other is a training run.
`benchmarks/benchmark.json` is what `make bench` writes, `reproduced/` what `prpn reproduce NAME --json` prints,
`precision/` the same runs in fp32 and bf16, `gains/` runs with one change each,
`temperature/` what `prpn temperature --json` prints, `embedded/` what the embedded model was made by and its scores.
`choice/` signals that choose models. Without a table, for docs/log.md: `students/` and `seed-3/`, other students and
their scores; `cut-short/`, runs that were stopped; `words-alone/`, models of other languages that read no punctuation;
`leaning/`, the first models whose trees leaned; `boundaries/`, what `prpn boundaries --json` prints.
The fields of recipes are those of `prpn.config`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prpn.report.card import facts_table, phrases_table, scores_tables, summary_table
from prpn.report.choice import choice_table
from prpn.report.gains import gains_table
from prpn.report.languages import languages_table
from prpn.report.precision import precision_table
from prpn.report.recipes import fields_table
from prpn.report.reproduction import time_words, value_words, with_spread
from prpn.report.study import study_table
from prpn.reproduction.experiments import CACHED, Figure, beside, load_experiments
from prpn.reproduction.paper import load_tables
from prpn.reproduction.recorded import gather, write_recorded
from prpn.text.atomic import replacing
from prpn.trees.protocols import PROTOCOLS

CONTROLS = ("right", "random-distances")
"""Baselines that stand beside the models; all are in the record."""


def results_table(folder: Path) -> str:
    """One row a recorded run: what was run, what came out, at what cost."""
    rows = [
        "| run | validation perplexity | bits per character | steps | time | memory | ended | seed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*rows, *(_row(name, record) for name, record in _records(folder) if "systems" not in record)])


def trees_table(folder: Path) -> str:
    """One row a system of a recorded evaluation: F1 by protocol with its interval, beside the two controls."""
    return _scores(folder, lambda name, record: record["differences"] and name in {*CONTROLS, *record["differences"]})


def baselines_table(folder: Path) -> str:
    """The evaluations in which no model took part."""
    return _scores(folder, lambda name, record: not record["differences"])


def paper_table(folder: Path) -> str:
    """One row a figure of ours that belongs to a table of the paper: our value, the paper's, at what cost."""
    rows = ["| table | figure of ours | ours | paper | its row | budget | time | command |", "|---" * 8 + "|"]
    known, recorded = load_experiments(), gather(folder)
    tables = load_tables()
    for name in (*tables, ""):
        for experiment, figure in beside(name, known.values()):
            found = recorded[experiment.name]
            paper = (str(tables[name].row(figure.row).value), figure.row) if figure.row else ("", "")
            cells = (
                str(tables[name].number) if name else "none",
                figure.label,
                value_words(found.value(figure), figure.measure),
                *paper,
                experiment.budget,
                time_words(found.seconds),
                f"`{experiment.command}`",
            )
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def language_table(folder: Path) -> str:
    """One row a recorded system that models language, alone and with a cache; no variants of experiments."""
    measured = [(on, cache) for cache in (False, True) for on in ("validation", "test")]
    measures = (f"{on}, with a cache" if cache else on for on, cache in measured)
    heads = ("text", "system", *measures, "paper: test", "budget", "time", "command")
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    known, recorded, tables = load_experiments(), gather(folder), load_tables()
    for table in tables.values():
        systems: dict[tuple[str, str], list[Figure]] = {}
        for experiment, figure in beside(table.name, known.values()):
            is_recorded = recorded[experiment.name].value(figure) is not None
            if is_recorded and not figure.is_of_trees and not experiment.variant_of:
                systems.setdefault((experiment.name, figure.system.removesuffix(CACHED)), []).append(figure)
        for (name, system), figures in systems.items():
            found = recorded[name]
            words = {(f.on, f.cache or f.system.endswith(CACHED)): with_spread(found, f) for f in figures}
            cells = (
                table.title,
                system,
                *(words.get(place, "") for place in measured),
                "".join(str(table.row(figure.row).value) for figure in figures if figure.row),
                known[name].budget,
                time_words(found.seconds_of(figures[0].system)),
                f"`{known[name].command}`",
            )
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def temperature_table(folder: Path) -> str:
    """One row a temperature of a recorded model, as `prpn temperature --json` prints them."""
    rows = ["| record | τ | perplexity | levels | reach | overlapping |", "|---" * 6 + "|"]
    for path in sorted((folder / "temperature").glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        for row in record["temperatures"]:
            tau = "∞" if row["temperature"] == "inf" else f"{row['temperature']:g}"
            star = ", as trained" if row["temperature"] == record["trained_at"] else ""
            rows.append(
                f"| `{path.stem}` | {tau}{star} | {row['perplexity']:.2f} | {row['levels']:.2f} | {row['reach']:.2f} "
                f"| {row['overlapping']:.2%} |"
            )
    return "\n".join(rows)


def training_speed_table(folder: Path) -> str:
    """One row a contender and size of the recorded benchmark: speed, memory, and what they are measured against."""
    rows = [
        "| size | contender | tokens/s | × slow twin | × untuned | × step by step | × its nn.LSTM | of ceiling | MiB "
        "| of twin's |",
        "|---" * 10 + "|",
    ]
    record = _benchmark(folder)
    for size, result in record["training"].items():
        for name, row in result["contenders"].items():
            memory = record["memory"][size][name]
            ratios = (_times(row[key]) for key in ("times_twin", "times_untuned", "times_step_by_step", "times_lstm"))
            rows.append(
                f"| {size} | {name} | {row['tokens_per_second']:,.0f} | {' | '.join(ratios)} "
                f"| {row['share_of_ceiling']:.0%} | {memory['growth_mib']:,} | {memory['share_of_twin']:.0%} |"
            )
    return "\n".join(rows)


def evaluation_speed_table(folder: Path) -> str:
    """Scoring text as one stream."""
    rows = ["| size | contender | tokens/s | × step by step |", "|---" * 4 + "|"]
    for size, result in _benchmark(folder)["evaluation"].items():
        for name, row in result.items():
            rows.append(f"| {size} | {name} | {row['tokens_per_second']:,.0f} | {_times(row['times_step_by_step'])} |")
    return "\n".join(rows)


def parsing_speed_table(folder: Path) -> str:
    """`prpn parse` from file to file, and starting up."""
    rows = ["| text | PRPN_KERNELS | tokens/s | sentences/s | same trees as `off` |", "|---" * 5 + "|"]
    record = _benchmark(folder)
    for form, result in record["parsing"].items():
        for kernel, row in result.items():
            rows.append(
                f"| {form} | {kernel} | {row['tokens_per_second']:,} | {row['sentences_per_second']:,} "
                f"| {row['same_trees']:.2%} |"
            )
    rows += ["", "| command | seconds | imports torch |", "|---" * 3 + "|"]
    for command, row in record["startup"].items():
        rows.append(f"| `{command}` | {row['median_seconds']:.2f} | {'yes' if row['imports_torch'] else 'no'} |")
    return "\n".join(rows)


PARTS: dict[str, Callable[[Path], str]] = {
    "results": results_table,
    "trees": trees_table,
    "baselines": baselines_table,
    "paper": paper_table,
    "language": language_table,
    "training speed": training_speed_table,
    "evaluation speed": evaluation_speed_table,
    "parsing speed": parsing_speed_table,
    "precision": precision_table,
    "choice": choice_table,
    "gains": gains_table,
    "languages": languages_table,
    "embedded facts": facts_table,
    "embedded scores": scores_tables,
    "embedded phrases": phrases_table,
    "embedded summary": summary_table,
    "better trees": lambda folder: study_table(folder, "better-trees"),
    "temperature": temperature_table,
    "recipes": lambda _: fields_table(),
}
"""What stands between `<!-- NAME: begin -->` and `<!-- NAME: end -->`."""


def with_tables(text: str, folder: Path) -> str:
    """The text with the tables between their markers."""
    for name, table in PARTS.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        if begin in text:
            before, _, rest = text.partition(begin)
            text = f"{before}{begin}\n{table(folder)}\n{end}{rest.partition(end)[2]}"
    return text


def _scores(folder: Path, is_shown: Callable[[str, dict[str, Any]], object]) -> str:
    rows = [f"| record | builder | system | {' | '.join(PROTOCOLS)} |", "|---" * (3 + len(PROTOCOLS)) + "|"]
    for name, record in _records(folder):
        for system, figures in record.get("systems", {}).items():
            if is_shown(system, record):
                found = [figures.get(protocol) for protocol in PROTOCOLS]
                cells = [f"{f['f1']:.2f} ({f['low']:.1f}–{f['high']:.1f})" if f else "" for f in found]
                rows.append(f"| `{name}` | {record['builder']} | {system} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _benchmark(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "benchmarks" / "benchmark.json").read_text(encoding="utf-8")))


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _records(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    return [(path.stem, json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.json"))]


def _row(name: str, record: dict[str, Any]) -> str:
    validation = record["validation"]
    return (
        f"| [{name}](../results/{name}.json) | {validation['perplexity']:.2f} | {validation['bits_per_character']:.4f} "
        f"| {record['steps']:,} | {record['seconds'] / 60:.1f} min | {record['peak_memory_gib']:.2f} GiB "
        f"| {record['finished']} | {record['recipe']['training']['seed']} |"
    )


if __name__ == "__main__":
    *pages, results = map(Path, sys.argv[1:])
    write_recorded(results)
    for page in pages:
        content = with_tables(page.read_text(encoding="utf-8"), results)
        with replacing(page) as file:
            file.write(content.encode())
