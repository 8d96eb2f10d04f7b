"""The verb pack: a model to be handed on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prpn.cli.completion import models
from prpn.cli.options import Json, Tokenized, app, print_json


@app.command(no_args_is_help=True)
def pack(
    model: Annotated[
        Path, typer.Argument(autocompletion=models, help="A model folder, as `prpn train` or `prpn distill` makes it.")
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to make.")],
    text: Annotated[
        str | None, typer.Option(metavar="FILE", help="Text to count changed trees on, its first 10,000 lines.")
    ] = None,
    tokenized: Tokenized = False,
    as_json: Json = False,
) -> None:
    """Copy a model into half the space, without what only its training needs.

    Weights are stored as fp16 and used as fp32. With --text, the share of sentences is counted that get another tree.

    Example: `prpn pack runs/crowd --out crowd --text valid.txt`
    """
    from prpn.embedded.pack import pack as run
    from prpn.embedded.pack import share_of_changed_trees
    from prpn.text.files import first_sentences

    sentences = (
        None if text is None else first_sentences(text)
    )  # a text that cannot be read, before anything is written
    size = run(model, out)
    changed = None if sentences is None else share_of_changed_trees(model, out, sentences, tokenized)
    if as_json:
        print_json({"model": str(out), "bytes": size, "changed_trees": changed})
        return
    print(f"saved in       {out} ({size / 1e6:.1f} MB)")
    if changed is not None:
        print(f"changed trees  {changed:.2%}")
