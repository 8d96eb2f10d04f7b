"""The verb temperature: what sharper and softer gates do to a trained model."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from prpn.cli.options import WORKS, Device, Json, OwnModel, Tokenized, app, print_json


@app.command(no_args_is_help=True)
def temperature(
    file: Annotated[str, typer.Argument(help=f"Text, one sentence a line; {WORKS}")],
    model: OwnModel,
    tau: Annotated[
        list[str] | None,
        typer.Option(metavar="T", help="A temperature to measure, or inf; again for more (default: 0.1 to 100, inf)."),
    ] = None,
    tokenized: Tokenized = False,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Measure what the temperature τ of the gates does to a trained model: no weight is changed.

    - **perplexity** of the text, read as by `prpn perplexity`; at `inf` gates are open or closed, as in the trees
    - **levels** of the structure that the gates draw, on average over lines: a word depends on the words whose gates
      are at least half open
    - **reach**: how many words that are, on average
    - **overlapping**: the share of pairs of such ranges of which neither holds the other, so that they form no tree;
      none at `inf`

    The temperature of training is marked with a star.

    Example: `prpn temperature test.txt --model runs/mine --tau 10 --tau inf`
    """
    from rich.table import Table

    from prpn import provenance
    from prpn.api.model import load
    from prpn.errors import InputError
    from prpn.language.temperature import TEMPERATURES, sentence_lengths, structure, temperatures_from
    from prpn.parsing.parser import Parser
    from prpn.report.console import console_for_tables
    from prpn.report.progress import counting
    from prpn.text.files import place_of
    from prpn.training.checkpoint import arrays_of
    from prpn.training.record import protocol
    from prpn.training.run import usable_device

    trained = load(model)
    # A student that came with the model gives its trees, but does not steer what it reads.
    own_parser = Parser(trained.recipe, trained.vocabulary, arrays_of(trained.network), str(model))
    trained.network.to(usable_device(device))
    own_tau, end = trained.recipe.model.temperature, trained.vocabulary.end
    wanted = sorted(set(temperatures_from(tau) if tau else (*TEMPERATURES, own_tau)))
    corpus = trained.encode_file(file, tokenized)
    words, lengths = corpus.ids[corpus.ids != end], sentence_lengths(corpus.ids, end)
    if max(lengths, default=0) < 2:
        raise InputError(place_of(file), "no line has two words", "give running text: there is no structure to measure")
    distances = [own_parser.activated(scores) for scores in own_parser.scores_of_ids(words, lengths)]
    rows = []
    with counting("sharpening gates", len(wanted) * len(corpus.ids), as_json) as progress:
        for each in wanted:
            changed = trained.at_temperature(each)
            score = changed.score_corpus(corpus, progress)
            rows.append((each, score, structure(distances, changed.recipe.model)))
    if as_json:
        print_json(
            {
                "command": provenance.command(),
                "commit": provenance.commit(),
                "text_sha256": corpus.checksum,
                "tokens": len(corpus.ids),
                "sentences": len(lengths),
                "protocol": protocol(trained.recipe),
                "trained_at": _json_number(own_tau),
                "temperatures": [
                    {"temperature": _json_number(each), "perplexity": score.perplexity, **found.to_json()}
                    for each, score, found in rows
                ],
            }
        )
        return
    table = Table("τ", "perplexity", "levels", "reach", "overlapping", box=None, header_style="")
    for column in table.columns:
        column.justify = "right"
    for each, score, found in rows:
        name = f"{each:g}{'*' if each == own_tau else ''}"
        table.add_row(
            name, f"{score.perplexity:.2f}", f"{found.levels:.2f}", f"{found.reach:.2f}", f"{found.overlapping:.2%}"
        )
    console_for_tables().print(table)
    print(f"\n* as trained; {protocol(trained.recipe)}")


def _json_number(value: float) -> float | str:
    return "inf" if math.isinf(value) else value
