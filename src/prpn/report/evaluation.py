"""An evaluation as tables in the terminal; what they leave out is in its JSON.

Names are the user's, so they are shown letter by letter: what rich takes for markup in a plain string is part of them.
Where a table is wider than the terminal, cells go on in the next line: a number that is cut off reads as another one.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Console, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from prpn.report.console import console_for_tables
from prpn.trees.evaluation import Evaluation

LABELS = 8
"""Labels shown, the most frequent ones."""


def print_evaluation(evaluation: Evaluation, console: Console | None = None) -> None:
    """Print all tables on standard output."""
    out = console_for_tables(console)
    counted, cleaning = evaluation.treebank.counted(), evaluation.treebank.cleaning
    limit = f" of at most {cleaning.maximum} words" if cleaning.maximum else ""
    words = sum(len(sentence.tree) for sentence in counted)
    out.print(f"{evaluation.treebank.name}: {len(counted):,} sentences{limit}, {words:,} words", markup=False)
    out.print(f"words: {_KEPT[cleaning.keep]}; builder: {evaluation.builder}", markup=False)
    if evaluation.treebank.broken:
        out.print(f"{len(evaluation.treebank.broken):,} broken trees skipped", markup=False)
    for part in _tables(evaluation):
        out.print()
        out.print(part)
    for name, diagnosis in evaluation.diagnoses.items():
        if diagnosis.foreign:
            share = f"{diagnosis.unknown_words:.0f} % of these words are unknown to {name}"
            out.print(f"{share}: use or train a model of this language.", style="bold red", markup=False)
        if diagnosis.collapsed:
            out.print(f"{name} has collapsed: its trees hardly depend on the words.", style="bold red", markup=False)


_KEPT = {
    "penn": "leaves with a Penn word tag",
    "unicode": "leaves that are not only punctuation or symbols",
    "all": "all leaves but empty elements",
}


def _tables(evaluation: Evaluation) -> Iterable[RenderableType]:
    protocols = list(next(iter(evaluation.systems.values())))
    main = _table("F1 and its 95 % interval", "system", *protocols)
    for name, found in evaluation.systems.items():
        cells = [f"{f.f1:.2f}\n[dim]{f.low:.1f}–{f.high:.1f}[/dim]" for f in found.values()]
        main.add_row(Text(name), *cells, style="bold" if name in evaluation.differences else "")
    yield main

    first = protocols[0]
    detail = _table(f"under {first}: F1 by number of words", "system", "precision", "recall", *evaluation.lengths)
    detail.add_row("sentences", "", "", *(f"{count:,}" for count in evaluation.lengths.values()), style="dim")
    for name, found in evaluation.systems.items():
        by_length = evaluation.by_length[name][first]
        cells = [f"{by_length[length]:.2f}" if length in by_length else "–" for length in evaluation.lengths]
        detail.add_row(Text(name), f"{found[first].precision:.2f}", f"{found[first].recall:.2f}", *cells)
    yield detail

    if shown := list(evaluation.labels)[:LABELS]:
        labels = _table("recall by gold label, whole sentences left out", "system", *shown)
        labels.add_row("constituents", *(f"{evaluation.labels[label]:,}" for label in shown), style="dim")
        for name, recall in evaluation.by_label.items():
            labels.add_row(Text(name), *(f"{recall[label]:.1f}" for label in shown))
        yield labels

    if evaluation.differences:
        gaps = _table(
            "difference of F1 and its 95 % interval, on the same resamples (paired bootstrap)",
            "system",
            "against",
            *protocols,
        )
        for name, others in evaluation.differences.items():
            for other, by_protocol in others.items():
                cells = [f"{d.difference:+.2f}\n[dim]{d.low:+.1f}, {d.high:+.1f}[/dim]" for d in by_protocol.values()]
                gaps.add_row(Text(name), Text(other), *cells)
        yield gaps

    if evaluation.seeds:
        seeds = _table(f"all models: they agree with each other by {evaluation.self_f1:.1f} F1", "", *protocols)
        for name in ("mean", "spread", "best"):
            seeds.add_row(name, *(f"{getattr(found, name):.2f}" for found in evaluation.seeds.values()))
        yield seeds

    if evaluation.diagnoses:
        overlaps = ("overlap with left", "with right", *(["with each other"] if evaluation.agreement else []))
        headings = (*overlaps, "mean depth", "sentences with ties", "saturated distances")
        shape = _table("shape of the trees, in percent but for depth", "model", *headings)
        for name, d in evaluation.diagnoses.items():
            agreement = [evaluation.agreement[name]] if evaluation.agreement else []
            values = (
                d.left_overlap,
                d.right_overlap,
                *agreement,
                d.mean_depth,
                d.tied_sentences,
                d.saturated_distances,
            )
            shape.add_row(Text(name), *(f"{value:.1f}" for value in values))
        yield shape


def _table(title: str, first: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in (first, *headings):
        justify: JustifyMethod = "left" if heading in (first, "against") else "right"
        table.add_column(Text(heading), justify=justify, overflow="fold")
    return table
