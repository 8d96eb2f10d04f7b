"""The verb boundaries: whether a character model has found the words."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from prpn.cli.options import WORKS, Json, OwnModel, app, print_json

LONGEST = 90
"""Characters of a line that are drawn."""


@app.command(no_args_is_help=True)
def boundaries(
    file: Annotated[str, typer.Argument(help=f"Text with spaces, one sentence a line; {WORKS}")],
    model: OwnModel,
    out: Annotated[
        Path | None, typer.Option(metavar="F.svg", help="Draw the distances of the first lines, as in the paper.")
    ] = None,
    lines: Annotated[int, typer.Option(metavar="N", min=1, help="How many lines to draw.")] = 3,
    as_json: Json = False,
) -> None:
    """Measure whether a model of characters has found the words of a text.

    - **area**: how often the distance at the end of a word (before a space or line end), or at its beginning (after
      one), is larger than one inside a word; 0.5 by chance, 1 if the distances know all words
    - **letters that stop**: the share of letters that reach back no further than the last space, with hard gates
    - **letters at the space**: the share of letters that reach back to it; the others that stop do so within their word
    - **spaces that go on**: the share of spaces that reach back beyond the space before

    Beside the last three stand the same shares with the distances in random order. The text is read as one stream.

    Example: `prpn boundaries test.txt --model runs/mine --out distances.svg`
    """
    import numpy as np

    from prpn.errors import ConfigError
    from prpn.language.boundaries import boundaries as measured
    from prpn.parsing.parser import Parser
    from prpn.report.distance_bars import distance_bars
    from prpn.text.atomic import output
    from prpn.text.files import read_pieces
    from prpn.text.lines import numbered_lines
    from prpn.text.tokenizer import SPACE
    from prpn.text.vocabulary import END

    if out is not None and out.suffix != ".svg":
        raise ConfigError(f"--out {out}: the picture is an SVG, so its name must end in .svg")
    parser = Parser.load(model)
    if not parser.tokenizer.by_character:
        raise ConfigError(f"{model} is a model of words: give one of characters, such as quick-char makes")
    read = [tokens for _, tokens in numbered_lines([read_pieces(file)], parser.tokenizer)]
    tokens = [token for line in read for token in line]
    scores = parser.scores([tokens])[0]
    is_space = np.array([token in (SPACE, END) for token in tokens], dtype=bool)
    found = measured(is_space, scores, parser.recipe.model.memory_slots)
    if out is not None:
        ends = np.cumsum([len(line) for line in read])
        drawn = [
            (line[:LONGEST], parser.activated(scores[end - len(line) : end])[:LONGEST].tolist())
            for line, end in islice(
                ((line, end) for line, end in zip(read, ends, strict=True) if line), min(lines, sys.maxsize)
            )
        ]
        drawn = [(["↵" if token == END else token for token in line], values) for line, values in drawn]
        with output(out) as picture:
            picture.write(distance_bars(drawn).encode())
    if as_json:
        print_json({**found.to_json(), "characters": len(tokens)})
        return
    print(f"area, end of word        {found.end:.4f}   (0.5 by chance)")
    print(f"area, beginning of word  {found.begin:.4f}   (0.5 by chance)")
    for name, now, control in (
        ("letters that stop", found.reaches.letters_stop, found.shuffled.letters_stop),
        ("letters at the space", found.reaches.letters_at_space, found.shuffled.letters_at_space),
        ("spaces that go on", found.reaches.spaces_go_on, found.shuffled.spaces_go_on),
    ):
        print(f"{name:<24} {now:.2%}   (in random order {control:.2%})")
    print(f"words                    {found.words:,} in {len(tokens):,} characters")
