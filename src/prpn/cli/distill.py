"""The verb distill: one parser out of several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prpn.cli.completion import models
from prpn.cli.options import Json, Tokenized, app, print_json
from prpn.config import Builder


@app.command(no_args_is_help=True)
def distill(
    model: Annotated[
        list[Path],
        typer.Option(
            "--model", "-m", autocompletion=models, help="A model to learn from; again for more, such as seeds."
        ),
    ],
    text: Annotated[
        list[str],
        typer.Option(metavar="FILE", help="Raw text to learn from, one sentence a line; again for more files."),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Model folder to make.")],
    builder: Annotated[
        Builder | None,
        typer.Option(help="How the models' mean distances become trees (default: the first model's own way)."),
    ] = None,
    tokenized: Tokenized = False,
    sentences: Annotated[
        int, typer.Option(metavar="N", min=0, help="Learn from the first N sentences alone; 0: from all.")
    ] = 0,
    epochs: Annotated[int, typer.Option(metavar="N", min=1, help="Passes over the sentences.")] = 3,
    lookback: Annotated[int, typer.Option(metavar="N", min=0, help="Words to the left that the student sees.")] = 2,
    lookahead: Annotated[int, typer.Option(metavar="N", min=0, help="Words to the right that it sees.")] = 5,
    channels: Annotated[int, typer.Option(metavar="N", min=1, help="Hidden units of the student.")] = 400,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 1,
    as_json: Json = False,
) -> None:
    """Teach one fast parser what several models and the marks of raw text say: a crowd at the cost of one.

    The models read raw text; a network like a model's parsing network, which may also look ahead, learns the trees of
    their mean distances. These are split beside marks first, and rather where a mark could stand, which another such
    network learns from the same text. No treebank takes part. The student reads every second sentence without its
    punctuation. The folder parses as any other (`prpn parse`, `prpn evaluate`), through the same builder if that leans,
    else `unbiased`. It has the vocabulary of the first model, whose language model comes along (`prpn perplexity`,
    `prpn generate`).

    Models that learned nothing, or the opposite, spoil the mean: `prpn judge` finds them without trees.

    **agreement** is the share of the crowd's constituents, in sentences that the student did not learn from, which it
    finds too.

    Example: `prpn distill -m runs/seed1 -m runs/seed2 -m runs/seed3 --text my.txt --out runs/crowd`
    """
    from prpn.distillation import distill as run
    from prpn.distillation.run import StudentConfig
    from prpn.models.folder import model_folder
    from prpn.parsing.parser import Parser

    how = StudentConfig(
        channels=channels, lookback=lookback, lookahead=lookahead, sentences=sentences, epochs=epochs, seed=seed
    )
    folders = [model_folder(each) for each in model]
    parsers = [Parser.load(folder) for folder in folders]
    result = run(
        parsers,
        text,
        out,
        how,
        builder=builder,
        tokenized=tokenized,
        language_model=folders[0],
        quiet=as_json,
    )
    if as_json:
        print_json(result)
        return
    print(f"learned from  {result['sentences']:,} sentences, {result['words']:,} words, {len(parsers)} parsers")
    print(f"agreement     {result['agreement']:.2%} of the crowd's constituents in held-out sentences")
    print(f"saved in      {out} ({result['seconds']:.0f} s)")
