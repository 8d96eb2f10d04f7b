"""Verbs of trees: parse, words, evaluate, score, average."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prpn.cli.completion import models, protocols
from prpn.cli.options import (
    EMBEDDED,
    WORKS,
    Json,
    Language,
    Sentences,
    SomeModel,
    Tokenized,
    app,
    print_json,
    reader_of,
    write_bytes,
)
from prpn.cli.streams import tell
from prpn.config import Builder
from prpn.errors import ConfigError, InputError
from prpn.text.files import STANDARD_INPUT, legible

if TYPE_CHECKING:
    from prpn.parsing.parser import Parser
    from prpn.trees import Tree
    from prpn.trees.cleaning import Treebank
    from prpn.trees.evaluation import Evaluation

SomeBuilder = Annotated[
    Builder | None,
    typer.Option(help="How distances become a tree (default: the model's own; `docs/evaluation.md` has all)."),
]
Treebanks = Annotated[
    list[str], typer.Argument(metavar="TREEBANK…", help=f"Files or folders of bracketed trees; {WORKS}")
]
Protocols = Annotated[
    list[str] | None,
    typer.Option(
        "--protocol",
        autocompletion=protocols,
        help="klein, released, kim, kim-corpus or evalb; again for more (default: all). Details by words: the first.",
    ),
]
MaximumWords = Annotated[
    int | None,
    typer.Option("--max-words", metavar="N", help="Leave out sentences of more words, counted after cleaning."),
]
Keep = Annotated[
    Literal["auto", "penn", "unicode", "all"],
    typer.Option(
        help="Which leaves are words: those with a Penn word tag, those that are not punctuation or symbols, or all. "
        "By default the tags decide."
    ),
]
SkipBroken = Annotated[
    bool, typer.Option("--skip-broken", help="Count broken trees and go on, instead of stopping at the first.")
]
SHOWN_ERRORS = 10


@app.command()
def parse(
    file: Annotated[str, typer.Argument(help=f"Text, one sentence a line; {WORKS}")] = "-",
    model: SomeModel = EMBEDDED,
    tokenized: Tokenized = False,
    sentences: Sentences = False,
    language: Language = None,
    builder: SomeBuilder = None,
    format_: Annotated[
        Literal["brackets", "labelled", "jsonl", "spans"], typer.Option("--format", help="How trees are written.")
    ] = "brackets",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write there, once all is done, instead of standard output.")
    ] = None,
    ids: Annotated[
        bool, typer.Option("--ids", help="Each line begins with an id and a tab; so does its tree (jsonl: `id`).")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first line that is not text.")] = False,
    threads: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Threads to use (default: one a processor).")
    ] = None,
) -> None:
    """Give every line of a text its tree: one sentence a line in, one tree a line out, in order.

    - brackets: `(the (old man))`
    - labelled: `(X (W the) (X (W old) (W man)))`, for readers that take what follows a bracket for a label, as nltk's
    - jsonl: an object with words, tree, spans, distances, and offsets, where each word begins and ends in its line
    - spans: `0-3 1-3`, the constituents of two or more words, ends not included

    An empty line stays empty. A line that is not text is reported, its place stays empty too, and the exit status is 1
    in the end. Memory does not grow with the text. With --sentences there is a tree for each sentence found
    instead, and a line that is not text ends it.

    Example: `echo "the old man sat on the bench" | prpn parse`
    """
    from prpn.parsing.parser import Parser
    from prpn.parsing.text import parse_into
    from prpn.report.progress import counting
    from prpn.text import fitness
    from prpn.text.atomic import output
    from prpn.text.files import place_of

    _refuse_a_sentence(file)
    text, parser = reader_of(sentences, language)(file), Parser.load(model).with_threads(threads)
    out = None if str(out) == STANDARD_INPUT else out
    fitness.warn(text, parser.tokenizer_for(tokenized), parser.vocabulary)
    with (
        counting(f"parsing {place_of(file)}", None, quiet=out is None and sys.stdout.isatty()) as progress,
        nullcontext() if out is None else output(out) as written,
    ):
        write = write_bytes if written is None else written.writelines
        counts = parse_into(
            write, parser, text, format_, builder,
            tokenized=tokenized, ids=ids, strict=strict, progress=progress, told=tell,
        )  # fmt: skip
    if not counts.lines:
        tell(f"{place_of(file)}: the input is empty, and so is the output")
    if counts.bad:
        how = "lines are not text; their trees are empty" if counts.bad > 1 else "lines is not text; its tree is empty"
        tell(f"{counts.bad:,} of {counts.lines:,} {how}")
        raise typer.Exit(1)


@app.command(no_args_is_help=True)
def words(
    treebank: Treebanks,
    max_words: MaximumWords = None,
    keep: Keep = "auto",
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Write words in lower case.")] = False,
    digits: Annotated[
        Literal["keep", "N", "number"], typer.Option(help="Write each run of digits, or each number, as N.")
    ] = "keep",
    skip_broken: SkipBroken = False,
) -> None:
    """Print the sentences of a treebank, cleaned as for scoring, one a line: what a parser should be given.

    Example: `prpn words wsj.mrg | prpn parse --tokenized --model runs/mine > mine.trees`, then
    `prpn score wsj.mrg mine.trees`
    """
    loaded = _load(treebank, skip_broken, keep=keep, lowercase=lowercase, digits=digits, maximum=max_words)
    for sentence in loaded.counted():
        print(sentence.line)


@app.command(no_args_is_help=True)
def evaluate(
    treebank: Treebanks,
    model: Annotated[
        list[Path] | None,
        typer.Option(
            "--model",
            "-m",
            autocompletion=models,
            help="A model; again for more, such as other seeds (default: english).",
        ),
    ] = None,
    builder: SomeBuilder = None,
    average: Annotated[bool, typer.Option("--average", help="Also score the consensus of all models.")] = False,
    protocol: Protocols = None,
    max_words: MaximumWords = None,
    keep: Keep = "auto",
    skip_broken: SkipBroken = False,
    as_json: Json = False,
) -> None:
    """Parse the words of a treebank and score the trees beside all baselines.

    Intervals hold 95 % of 1,000 resamples of the sentences. Several models give mean, spread, best and how far they
    agree. Overlap with left and right branching, ties and saturated distances tell a model that has collapsed.

    Example: `prpn evaluate wsj/ --model runs/mine --max-words 10`
    """
    from prpn.parsing.parser import Parser
    from prpn.report.progress import counting
    from prpn.trees.evaluation import common_builder, evaluate_parsers
    from prpn.trees.protocols import protocols_named

    chosen, folders = protocols_named(protocol or []), model or [EMBEDDED]
    if average and len(folders) < 2:
        raise ConfigError("--average needs two models or more: give --model again")
    parsers = {name: Parser.load(folder) for name, folder in zip(short_names(folders), folders, strict=True)}
    through = builder or common_builder(parsers)
    loaded = _load(treebank, skip_broken, as_json, keep=keep, maximum=max_words)
    with counting("scoring", None, as_json) as progress:
        result = evaluate_parsers(loaded, parsers, chosen, through, with_average=average, progress=progress)
    _show(result, as_json, treebank, dict(zip(parsers, folders, strict=True)), parsers)


@app.command(no_args_is_help=True)
def score(
    gold: Annotated[str, typer.Argument(metavar="GOLD", help="A treebank: file or folder.")],
    predicted: Annotated[list[str], typer.Argument(metavar="PREDICTED…", help="Predicted trees of its sentences.")],
    protocol: Protocols = None,
    builder: Annotated[Builder, typer.Option(help="Through which `random-distances` go.")] = "paper",
    max_words: MaximumWords = None,
    keep: Keep = "auto",
    skip_broken: SkipBroken = False,
    as_json: Json = False,
) -> None:
    """Score predicted trees of any system against a treebank, beside all baselines.

    Predictions stand in the order of the treebank, over its words, or also over its punctuation, which is then taken
    out. Several files are compared with each other.

    Example: `prpn score wsj.mrg mine.trees --protocol kim`
    """
    from prpn.report.progress import counting
    from prpn.text.files import refuse_standard_input_twice
    from prpn.trees.evaluation import System
    from prpn.trees.evaluation import evaluate as run
    from prpn.trees.predicted import read_predictions
    from prpn.trees.protocols import protocols_named

    refuse_standard_input_twice([gold, *predicted])
    chosen = protocols_named(protocol or [])
    loaded = _load([gold], skip_broken, as_json, keep=keep, maximum=max_words)
    systems = []
    for name, path in zip(short_names([Path(path) for path in predicted]), predicted, strict=True):
        read = read_predictions(path, loaded)
        systems.append(System(name, [read.trees]))
        if read.reworded:
            tell(f"{path}: {read.reworded:,} trees have other words than the gold trees")
    with counting("scoring", None, as_json) as progress:
        result = run(loaded, systems, chosen, builder, progress)
    _show(result, as_json, [gold], {}, {})


@app.command(no_args_is_help=True)
def average(
    file: Annotated[list[str], typer.Argument(metavar="FILE…", help="Trees of the same sentences, one a line.")],
    weight: Annotated[
        list[float] | None, typer.Option(help="Weight of a file's votes, once for each file in order (default: 1).")
    ] = None,
) -> None:
    """Print the consensus of several bracket files: the binary tree with the most votes for its constituents.

    Among trees with equally many votes, the one that splits earliest wins. An empty line stays empty.

    Example: `prpn average seed1.trees seed2.trees seed3.trees > crowd.trees`
    """
    from prpn.report.progress import counting
    from prpn.text.files import place_of
    from prpn.trees.average import average as consensus
    from prpn.trees.predicted import read_side_by_side

    if weight and len(weight) != len(file):
        raise ConfigError(f"{len(weight)} weights for {len(file)} files: give one for each")
    trees: tuple[Tree, ...] | None = None
    with counting("averaging", None, quiet=sys.stdout.isatty()) as progress:
        for trees in read_side_by_side(file):
            tree = consensus(trees, weight or None)
            print(tree.brackets() if tree.words else "")
            progress(1)
    if trees is None:
        tell(f"{place_of(file[0])}: the input is empty, and so is the output")


def _refuse_a_sentence(file: str) -> None:
    """Notice a sentence where the name of a file should stand."""
    if " " in file.strip() and not os.path.lexists(file):
        remedy = 'to parse a sentence: echo "…" | prpn parse'
        raise InputError(legible(shorten(file, 60, placeholder=" …")), "no such file", remedy)


def short_names(paths: list[Path]) -> list[str]:
    """Short names that tell paths apart, and from the baselines: the last part of each, else the whole path."""
    from prpn.baselines.trees import baselines
    from prpn.trees.evaluation import AVERAGE

    twice = [path for path in paths if paths.count(path) > 1]
    if twice:
        raise ConfigError(f"{twice[0]} is given twice: one system cannot be compared with itself")
    short = [path.name or str(path) for path in paths]
    taken = [*short, *baselines("paper"), AVERAGE]
    long = [str(path) if path.is_absolute() else f"./{path}" for path in paths]
    return [name if taken.count(name) == 1 else whole for name, whole in zip(short, long, strict=True)]


def _load(paths: list[str], skip_broken: bool, quiet: bool = False, **cleaning: Any) -> Treebank:
    from prpn.report.progress import counting
    from prpn.trees.cleaning import Cleaning, load_treebank

    with counting("reading trees", None, quiet) as progress:
        loaded = load_treebank(paths, Cleaning(**cleaning), skip_broken=skip_broken, progress=progress)
    for error in loaded.broken[:SHOWN_ERRORS]:
        tell(f"skipped: {error}")
    if len(loaded.broken) > SHOWN_ERRORS:
        tell(f"skipped {len(loaded.broken):,} broken trees in all")
    return loaded


def _show(
    result: Evaluation, as_json: bool, paths: list[str], folders: Mapping[str, Path], parsers: Mapping[str, Parser]
) -> None:
    from prpn import provenance
    from prpn.models.folder import held_out_loss
    from prpn.report.evaluation import print_evaluation
    from prpn.trees.treebank import files_of

    if not as_json:
        print_evaluation(result)
        return
    origin = {
        "command": provenance.command(),
        "commit": provenance.commit(),
        "treebank_sha256": provenance.checksum(files_of(paths)),
        "models": {
            name: {
                "recipe": parser.recipe.name,
                "seed": parser.recipe.training.seed,
                "held_out_loss": held_out_loss(folders[name]),
            }
            for name, parser in parsers.items()
        },
        "machine": provenance.machine(),
    }
    print_json(result.to_json() | origin)
