"""The verb judge: which model, through which builder, by raw text alone."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, get_args

import typer

from prpn.cli.completion import models
from prpn.cli.options import EMBEDDED, WORKS, Json, Tokenized, app, print_json
from prpn.cli.trees import short_names
from prpn.config import Builder
from prpn.errors import ConfigError, InputError
from prpn.text.files import FIRST_LINES


@app.command(no_args_is_help=True)
def judge(
    file: Annotated[str, typer.Argument(help=f"Text with its punctuation, one sentence a line; {WORKS}")],
    model: Annotated[
        list[Path] | None,
        typer.Option(
            "--model", "-m", autocompletion=models, help="A model folder, or an embedded model's name; again for more."
        ),
    ] = None,
    builder: Annotated[
        Builder | None, typer.Option(help="How distances become trees (default: every way, one after the other).")
    ] = None,
    lines: Annotated[int, typer.Option(metavar="N", min=1, help="Read the first N lines alone.")] = FIRST_LINES,
    tokenized: Tokenized = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Write the best builder, or the one given, into each model's folder.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Judge trees without a treebank: do they keep together what stands between two commas?

    Punctuation and symbols are taken out of each sentence, and the model parses the words that are left. The figure is
    the share of the **stretches**, the words that stood between two marks, that are constituents of its tree. Of
    several models of a language take the one with the largest share through `unbiased`, which gives nothing away; then
    the builder with the largest share. No annotation is needed.

    Beside it: the same for random distances through the same builder, which tells whether the model has any part in it,
    and for right and left branching, which have the last or the first stretch of a sentence for nothing.

    With `--keep` a model parses through its best builder from then on, unless another is asked for.

    Example: `prpn judge my.txt -m runs/seed1 -m runs/seed2 -m runs/seed3`
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from prpn import provenance
    from prpn.config import save_recipe
    from prpn.models.files import CONFIG
    from prpn.models.folder import held_out_loss, is_embedded, model_folder
    from prpn.parsing.parser import Parser
    from prpn.report.console import console_for_tables
    from prpn.report.progress import counting
    from prpn.text import fitness
    from prpn.text.files import first_sentences, place_of
    from prpn.trees.judgement import judge as judged

    folders = dict(zip(short_names(model or [EMBEDDED]), map(model_folder, model or [EMBEDDED]), strict=True))
    if keep and any(map(is_embedded, folders.values())):
        raise ConfigError("--keep: a model that comes with the package is not changed; give --builder where it is used")
    builders = [builder] if builder else list(get_args(Builder))
    parsers = {name: Parser.load(folder) for name, folder in folders.items()}
    text, first = first_sentences(file, lines), next(iter(parsers.values()))
    fitness.warn_of("\n".join(text), place_of(file), first.tokenizer_for(tokenized), first.vocabulary)
    found = {}
    with counting("judging", len(folders), quiet=as_json) as progress:
        for name in parsers:
            found[name] = judged(parsers[name], text, builders, tokenized, place_of(file))
            progress(1)
    if keep:
        for name, folder in folders.items():
            try:
                save_recipe(parsers[name].through(found[name].best_builder).recipe, folder / CONFIG)
            except OSError as error:
                raise InputError(str(folder), f"cannot be changed ({error.strerror})", "judge without --keep") from None
            print(f"{name} now builds with {found[name].best_builder}", file=sys.stderr)
    if as_json:
        rows = {
            name: asdict(each) | {"best_builder": each.best_builder, "held_out_loss": held_out_loss(folders[name])}
            for name, each in found.items()
        }
        print_json(
            {
                "text": file,
                "text_sha256": provenance.checksum([file]),
                "sentences": len(text),
                "models": rows,
                "command": provenance.command(),
                "commit": provenance.commit(),
            }
        )
        return
    table = Table("model", "builder", "stretches", "found", "random distances", "right", "left", box=box.SIMPLE)
    for name, each in found.items():
        for one in each.model:
            shares = (each.model[one], each.random_distances[one], each.right, each.left)
            table.add_row(Text(name), one, f"{each.stretches:,}", *(f"{share:.1%}" for share in shares))
    console_for_tables().print(table)
