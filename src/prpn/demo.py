"""`make demo`, or `python -m prpn.demo`: the whole story in minutes, on text that comes with the package.

Trains a small model and a plain LSTM of the same size on English web sentences, compares both with a unigram model on
held-out text, draws what the model's distances say about sentences that it never saw, and scores its trees on a
treebank that it never saw either.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from prpn.api.model import Model, load
from prpn.baselines.unigram import unigram_score
from prpn.config import Recipe, load_recipe, read_saved_recipe
from prpn.errors import InterruptedRunError, PrpnError
from prpn.report.evaluation import print_evaluation
from prpn.report.progress import counting
from prpn.report.terminal import draw_sentence
from prpn.training.data import embedded_corpus, prepare
from prpn.training.lock import only_run
from prpn.training.process import own_process
from prpn.training.record import protocol
from prpn.training.run import train
from prpn.training.signals import StopRequest
from prpn.trees.cleaning import load_treebank
from prpn.trees.evaluation import Evaluation, evaluate_parsers
from prpn.trees.protocols import protocols_named

SENTENCES = (
    "the old man sat on the bench",
    "i would like to know where you bought this",
    "the people who live in this house have a new car",
    "she told me that the food at the restaurant was great",
)
"""Written for this page: no corpus has them."""
PLAIN_LSTM = (
    "model.parsing=false",
    "model.reading_attention=false",
    "model.predict_attention=false",
    "model.memory_slots=1",
)


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(prog="python -m prpn.demo", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs"), help="folder for the two models")
    parser.add_argument("--set", action="append", default=[], metavar="section.key=value", help="override the recipe")
    arguments = parser.parse_args()
    with own_process() as stop:
        _demonstrate(load_recipe("demo").override(arguments.set), arguments.out, stop)


def _demonstrate(recipe: Recipe, out: Path, stop: StopRequest) -> None:
    console = Console(highlight=False)
    folder = out / "make-demo"

    console.rule("[bold]1. A language model that looks for structure")
    ours = _train_anew(recipe, folder, stop)
    console.rule("[bold]2. The same without structure: a plain LSTM of the same size")
    lstm = _train_anew(recipe.override(PLAIN_LSTM), out / "make-demo-lstm", stop)
    console.rule("[bold]3. How well each predicts text it never saw")
    data = prepare(recipe, [], None)
    unigram = unigram_score(data.training, data.validation, len(data.vocabulary))
    table = Table(caption=f"{len(data.validation.ids):,} held-out tokens; {protocol(recipe)}")
    for heading in ("model", "perplexity", "bits per character", "seconds of training"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    table.add_row("unigram", f"{unigram.perplexity:.1f}", f"{unigram.bits_per_character:.3f}", "0")
    table.add_row("LSTM", *_row(lstm))
    table.add_row("PRPN", *_row(ours), style="bold")
    console.print(table)

    console.rule("[bold]4. The structure it found, from raw text alone")
    model = load(folder)
    for sentence in SENTENCES:
        console.print(_drawing(model, sentence, console.width), markup=False, soft_wrap=True)
        console.print()
    console.print("A bar before a word is the syntactic distance there; the tree splits where bars are high.")
    console.rule("[bold]5. How good the trees are: the half of MASC that is for final scores")
    print_evaluation(_evaluation(model), console)
    console.print(
        "Right branching is hard to beat in English, and random distances gain from the builder too: a model has found "
        "something where it is above random-distances by more than the intervals. docs/evaluation.md explains.",
        soft_wrap=True,
    )
    console.rule("[bold]Next")
    for command in (
        f"prpn info {folder}",
        "prpn train quick-word --text YOUR.txt --out runs/mine      # any language, one sentence a line",
        "prpn perplexity OTHER.txt --model runs/mine",
        "prpn parse OTHER.txt --model runs/mine > OTHER.trees",
        "prpn evaluate TREEBANK --model runs/mine --max-words 10",
        f'python -c \'import prpn; print(prpn.load("{folder}").parse("we saw the red car").pretty())\'',
    ):
        console.print(f"  {command}", markup=False, soft_wrap=True)
    console.print("The commands are in .venv/bin: . .venv/bin/activate puts them on the path.")


def _train_anew(recipe: Recipe, folder: Path, stop: StopRequest) -> dict[str, Any]:
    """Train, in place of an earlier demonstration."""
    saved = folder / "config.json"
    if saved.exists() and read_saved_recipe(saved).name == recipe.name:
        with only_run(folder):
            shutil.rmtree(folder)
    try:
        return train(recipe, folder, stop=stop)
    except InterruptedRunError:
        raise InterruptedRunError("stopped; the demonstration begins anew next time") from None


def _row(result: dict[str, Any]) -> tuple[str, str, str]:
    figures = result["validation"]
    return f"{figures['perplexity']:.1f}", f"{figures['bits_per_character']:.3f}", f"{result['seconds']:.0f}"


def _evaluation(model: Model) -> Evaluation:
    """Even lines of MASC: odd ones are for those who develop."""
    masc = load_treebank([embedded_corpus("masc", "trees")])
    held_out = replace(masc, name="MASC, even lines", sentences=masc.sentences[1::2])
    protocols = protocols_named([])
    with counting("scoring", None) as progress:
        return evaluate_parsers(held_out, {"PRPN": model.parser}, protocols, progress=progress)


def _drawing(model: Model, sentence: str, width: int) -> str:
    return draw_sentence(sentence.split(), model.distances(sentence), model.parse(sentence), width)


if __name__ == "__main__":
    try:
        main()
    except PrpnError as error:
        sys.exit(f"prpn: {error}")
