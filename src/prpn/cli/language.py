"""Verbs of the language model: train, generate, info."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prpn.cli.completion import models, recipes
from prpn.cli.options import (
    A_MODEL,
    EMBEDDED,
    WORKS,
    Device,
    Json,
    Language,
    Sentences,
    SomeModel,
    Tokenized,
    app,
    print_json,
    reader_of,
)
from prpn.cli.streams import tell


@app.command(no_args_is_help=True)
def train(
    recipe: Annotated[
        str, typer.Argument(autocompletion=recipes, help="A recipe of the package, by name, or a TOML file.")
    ],
    text: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TEXT]…", show_default=False, help=f"Files to learn from, one sentence a line; {WORKS}"
        ),
    ] = None,
    more_text: Annotated[
        list[str] | None,
        typer.Option("--text", metavar="FILE", help="The same, where it reads better; again for more files."),
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
        Path | None,
        typer.Option(
            metavar="MODEL",
            autocompletion=models,
            help="A model folder, or an embedded model's name, to start from instead of random weights.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random; a seed makes a run repeat.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in --out, if any.")] = False,
    device: Device = "cpu",
    tokenized: Tokenized = False,
    sentences: Sentences = False,
    language: Language = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Override a field, such as training.epochs=5."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a model on raw text.

    - for minutes on a laptop: quick-word, quick-char, quick-parsing, demo (which brings its own text)
    - for trees: english (ten million words), little-text (a hundred thousand)
    - for hours on a laptop: long-word, long-char, large-word
    - the paper's experiments: ptb-word, ptb-char, text8-word, text8-char, parsing

    The best weights by held-out loss, the vocabulary, the configuration and the metrics go to the model folder. Ctrl-C
    saves and stops; the same command with --resume goes on, and ends with the same weights as an uninterrupted run.
    With more epochs or steps it goes on beyond its end; a schedule that falls to the end then falls anew from where it
    would be in the larger budget.

    Example: `prpn train quick-word --text my.txt --out runs/mine`
    """
    from prpn.config import load_recipe
    from prpn.training.process import own_process
    from prpn.training.run import train as run

    read = reader_of(sentences, language)
    chosen = load_recipe(recipe).override([*(set_ or []), *([] if seed is None else [f"training.seed={seed}"])])
    with own_process() as stop:
        result = run(
            chosen,
            out or Path("runs") / chosen.name,
            texts=list(map(read, [*(text or []), *(more_text or [])])),
            validation=None if valid is None else read(valid),
            treebanks=treebank or [],
            tokenized=tokenized,
            initial=init,
            resume=resume,
            device=device,
            quiet=as_json,
            stop=stop,
        )
    if as_json:
        print_json(result)
    else:
        figures = result["validation"]
        print(
            f"validation perplexity {figures['perplexity']:.2f}, {figures['bits_per_character']:.4f} bits a character"
        )


@app.command()
def generate(
    model: SomeModel = EMBEDDED,
    prompt: Annotated[str, typer.Option(help="Text to go on from; without it a new sentence begins.")] = "",
    tokens: Annotated[int, typer.Option(metavar="N", help="How many tokens to draw, line ends included.")] = 100,
    temperature: Annotated[
        float, typer.Option(metavar="T", help="1: as the model has it; lower: safer; 0: always the most probable.")
    ] = 1.0,
    top_k: Annotated[
        int | None, typer.Option(metavar="K", help="Draw from the K most probable tokens (default: from all).")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="The same seed draws the same text.")] = None,
    unknown: Annotated[
        bool, typer.Option("--unknown", help="Let `<unk>` and classes of unknown words be drawn, too.")
    ] = False,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Draw text from a model.

    It begins after a sentence end, reads the prompt, and goes on token by token with its state carried. Words are
    joined by spaces, characters by nothing; `</s>` ends a line. Nothing else is done to undo the tokeniser: punctuation
    keeps its spaces. `<unk>` and classes of unknown words are left out unless --unknown; the other tokens share their
    probability.

    Example: `prpn generate --prompt "the old man" --temperature 0.7 --seed 1`
    """
    from secrets import randbits

    from prpn.api.model import load
    from prpn.language.generation import Sampling, prompt_tokens, written
    from prpn.text.tokenizer import Tokenizer
    from prpn.training.run import usable_device

    sampling = Sampling(randbits(32) if seed is None else seed, temperature, top_k, unknown)
    trained = load(model)
    trained.network.to(usable_device(device))
    tokenizer = Tokenizer(trained.recipe.text)
    drawn = trained.continuation(prompt, tokens, sampling)
    if foreign := [token for token in prompt_tokens(prompt, tokenizer) if token not in trained.vocabulary]:
        tell(f"unknown words: {' '.join(foreign)}")
    if as_json:
        chosen = list(drawn)
        text = prompt + "".join(written(chosen, tokenizer, prompt))
        print_json({"text": text, "prompt": prompt, "tokens": chosen, "seed": sampling.seed})
        return
    last = prompt
    print(prompt, end="", flush=True)
    for last in written(drawn, tokenizer, prompt):
        print(last, end="", flush=True)
    print(end="" if last.endswith("\n") else "\n")


@app.command()
def info(
    model: Annotated[Path, typer.Argument(show_default=False, autocompletion=models, help=A_MODEL)] = EMBEDDED,
    as_json: Json = False,
) -> None:
    """Tell what a model is, what it was trained on, its numbers, and which kernels are in use."""
    from prpn import kernels
    from prpn.api.model import load
    from prpn.config import read_saved_recipe
    from prpn.models.files import CARD, CONFIG, VOCABULARY, WEIGHTS, read_text
    from prpn.models.folder import model_folder
    from prpn.models.weights import parameters_of
    from prpn.text.vocabulary import Vocabulary
    from prpn.training.record import read_record

    folder = model_folder(model)
    card = folder / CARD
    if card.exists() or (folder / WEIGHTS).exists():
        trained = load(folder)
        recipe, vocabulary = trained.recipe, trained.vocabulary
        _ = trained.network  # is there one?
    else:  # its training was stopped before the first evaluation
        recipe, vocabulary = read_saved_recipe(folder / CONFIG), Vocabulary.load(folder / VOCABULARY)
    parameters = parameters_of(recipe.model, len(vocabulary))
    if as_json:
        elsewhere = ("recipe", "metrics")
        print_json(
            {
                **({} if card.exists() else {"finished": None}),
                **{key: value for key, value in read_record(folder).items() if key not in elsewhere},
                "config": recipe.to_json(),
                "vocabulary": len(vocabulary),
                "parameters": parameters,
                "kernels": kernels.described(),
            }
        )
        return
    if card.exists():
        print(_for_readers(read_text(card)))
    else:
        print(f"# {folder.resolve().name}\n\nTraining has not finished.\n")
        print(f"recipe {recipe.name}, vocabulary {len(vocabulary):,}")
    print(f"{parameters:,} parameters; kernels: {kernels.described()}")


def _for_readers(card: str) -> str:
    """A card without the comments that end a line, and without what would steer the terminal."""
    shown = []
    for line in card.splitlines(keepends=True):
        begin = line.find("<!--")
        if begin >= 0 and line.endswith("-->\n"):
            line = line[:begin]
        shown.append(line)
    return "".join(letter for letter in "".join(shown) if letter.isprintable() or letter in "\n\t")
