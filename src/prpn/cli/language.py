"""Verbs of the language model: train, info."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prpn.cli.options import Device, Json, Tokenized, app, print_json


@app.command(no_args_is_help=True)
def train(
    recipe: Annotated[str, typer.Argument(help="A recipe of the package, by name, or a TOML file.")],
    text: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="Text to learn from, one sentence a line; again for more files. `-`, .gz, .xz work."
        ),
    ] = None,
    valid: Annotated[
        str | None, typer.Option(metavar="FILE", help="Held-out text (default: the end of the text).")
    ] = None,
    treebank: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Trees to score at each evaluation: watched, never used to choose weights."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Model folder to make (default: runs/RECIPE).")
    ] = None,
    init: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Model folder to start from instead of random weights.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random; a seed makes a run repeat.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in --out, if any.")] = False,
    device: Device = "cpu",
    tokenized: Tokenized = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Override a field, such as training.epochs=5."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a model on raw text.

    - for minutes on a laptop: quick-word, quick-char, quick-parsing, demo (which brings its own text)
    - the paper's experiments: ptb-word, ptb-char, text8-word, text8-char, parsing

    The best weights by held-out loss, the vocabulary, the configuration and the metrics go to the model folder. Ctrl-C
    saves and stops; the same command with --resume goes on, and ends with the same weights as an uninterrupted run.

    Example: `prpn train quick-word --text my.txt --out runs/mine`
    """
    from prpn.config import load_recipe
    from prpn.training.memory import keep_freed_memory
    from prpn.training.run import train as run

    keep_freed_memory()
    chosen = load_recipe(recipe).override([*(set_ or []), *([] if seed is None else [f"training.seed={seed}"])])
    result = run(
        chosen,
        out or Path("runs") / chosen.name,
        texts=text or [],
        validation=valid,
        treebanks=treebank or [],
        tokenized=tokenized,
        initial=init,
        resume=resume,
        device=device,
        quiet=as_json,
    )
    if as_json:
        print_json(result)
    else:
        figures = result["validation"]
        print(
            f"validation perplexity {figures['perplexity']:.2f}, {figures['bits_per_character']:.4f} bits a character"
        )


@app.command(no_args_is_help=True)
def info(
    model: Annotated[Path, typer.Argument(help="A model folder.")],
    as_json: Json = False,
) -> None:
    """Tell what a model is, what it was trained on, its numbers, and which kernels are in use."""
    from prpn import kernels
    from prpn.pretrained import load

    trained = load(model)
    parameters = sum(p.numel() for p in trained.network.parameters())
    if as_json:
        print_json(
            {
                "config": trained.recipe.to_json(),
                "vocabulary": len(trained.vocabulary),
                "parameters": parameters,
                "kernels": kernels.described(),
            }
        )
        return
    card = model / "README.md"
    print(card.read_text(encoding="utf-8") if card.exists() else f"# {model.name}\n\nTraining has not finished.\n")
    print(f"{parameters:,} parameters; kernels: {kernels.described()}")
