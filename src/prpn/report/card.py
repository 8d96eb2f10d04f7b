"""The numbers on the card of the embedded model, made from `results/embedded/`.

[KIND-]teacher-SEED.json   how each teacher was trained, as `prpn train` leaves it
student.json               how the student was, as `prpn distill` leaves it
TREEBANK-BUILDER.json      what `prpn evaluate TREEBANK --model english --builder BUILDER --json` prints;
                           TREEBANK10-BUILDER.json with `--max-words 10`
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from prpn.models.folder import DEFAULT
from prpn.report.reproduction import time_words
from prpn.trees.protocols import PROTOCOLS

FOLDER = "embedded"
THROUGH_BUILDER = ("random-distances", DEFAULT)
"""Systems whose trees depend on the builder."""
SUMMARY = ("released", "kim")
SUMMARIZED = ("random-distances", "right", DEFAULT)
PHRASES = ("DT+NN", "NP", "VP", "PP", "S", "SBAR")
Record = dict[str, Any]


def facts_table(results: Path) -> str:
    """What the model is made of, and what each step of making it took."""
    teachers, student = _records(results, "*teacher-*"), _record(results, "student")
    first = next(iter(teachers.values()))
    data, seconds = first["data"], sum(record["seconds"] for record in teachers.values())
    rows = {
        "text": f"{data['training']['tokens']:,} tokens, SHA-256 `{data['training']['sha256'][:16]}…`",
        "vocabulary": f"{data['vocabulary']:,} words and classes of unknown words",
        "teachers": f"{', '.join(teachers)}: {first['steps']:,} steps each, {time_words(seconds)} together",
        "their held-out perplexity": ", ".join(f"{_perplexity(record):.2f}" for record in teachers.values()),
        "student": f"learned from {student['sentences']:,} sentences and {' and '.join(student['teachers'])}, in "
        f"{time_words(student['seconds'])}; finds {student['agreement']:.1%} of what it is taught in others",
    }
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {words} |" for name, words in rows.items())])


def scores_tables(results: Path) -> str:
    """A table a treebank and length: every protocol, every baseline, and the model through each builder."""
    by_treebank: dict[str, list[Record]] = {}
    for name, record in _records(results, "*").items():
        if "systems" in record:
            by_treebank.setdefault(name.partition("-")[0], []).append(record)
    parts = []
    for records in by_treebank.values():
        first = records[0]
        most = first["cleaning"]["maximum"]
        limit = f", at most {most} words" if most else ", all lengths"
        parts += [f"**{_name(first)}{limit}**: {first['sentences']:,} sentences, {first['words']:,} words", ""]
        parts += [f"| system | {' | '.join(PROTOCOLS)} |", "|---" * (1 + len(PROTOCOLS)) + "|"]
        parts += [_row(name, found) for name, found in first["systems"].items() if name not in THROUGH_BUILDER]
        for system in THROUGH_BUILDER:
            parts += [_row(f"{system}, `{each['builder']}`", each["systems"][system]) for each in records]
        parts.append("")
    return "\n".join(parts).rstrip()


def summary_table(results: Path) -> str:
    """One row a treebank and length: the model through its own builder beside the two controls."""
    heads = ("trees", "sentences", *(f"{name}, `{p}`" for p in SUMMARY for name in SUMMARIZED))
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for record in _own_records(results):
        most = record["cleaning"]["maximum"]
        cells = [f"{record['systems'][name][p]['f1']:.1f}" for p in SUMMARY for name in SUMMARIZED]
        limit = f", at most {most} words" if most else ""
        rows.append(f"| {_name(record)}{limit} | {record['sentences']:,} | {' | '.join(cells)} |")
    return "\n".join(rows)


def phrases_table(results: Path) -> str:
    """The share of phrases that are found, by kind, all lengths."""
    rows = [f"| treebank | system | {' | '.join(PHRASES)} |", "|---" * (2 + len(PHRASES)) + "|"]
    for record in _own_records(results):
        if not record["cleaning"]["maximum"]:
            for system in SUMMARIZED:
                recall = record["by_label"][system]
                cells = [f"{recall[kind]:.1f}" if kind in recall else "–" for kind in PHRASES]
                rows.append(f"| {_name(record)} | {system} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _row(name: str, figures: dict[str, Any]) -> str:
    cells = [f"{figures[p]['f1']:.2f} ({figures[p]['low']:.1f}–{figures[p]['high']:.1f})" for p in PROTOCOLS]
    return f"| {name} | {' | '.join(cells)} |"


def _own_records(results: Path) -> list[Record]:
    """The evaluations through the model's own builder."""
    builder = _record(results, "student")["builder"]
    return [
        record for record in _records(results, "*").values() if record.get("systems") and record["builder"] == builder
    ]


def _name(record: Record) -> str:
    return Path(record["treebank"]).name


def _perplexity(record: Record) -> float:
    return float(record["validation"]["perplexity"])


def _record(results: Path, name: str) -> Record:
    return _records(results, name)[name]


def _records(results: Path, pattern: str) -> dict[str, Record]:
    paths = sorted((results / FOLDER).glob(f"{pattern}.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}
