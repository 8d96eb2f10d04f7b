"""The command itself, and the options that several verbs share."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from prpn.cli.completion import models
from prpn.errors import ConfigError
from prpn.models.files import finite
from prpn.models.folder import DEFAULT, model_folder
from prpn.text.files import legible

VERBS = (
    "train", "parse", "words", "evaluate", "score", "judge", "average", "distill", "pack", "perplexity", "generate",
    "boundaries", "temperature", "recipe", "reproduce", "info",
)  # fmt: skip
"""In the order in which `prpn --help` lists them."""


class Verbs(TyperGroup):
    """The verbs in their order, whichever module brings them."""

    def list_commands(self, ctx: object) -> list[str]:
        """Name them all; a verb that is missing above is an error."""
        return sorted(self.commands, key=VERBS.index)


app = typer.Typer(
    name="prpn",
    cls=Verbs,
    help="A language model that discovers the syntax of the text it reads, without a treebank.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

WORKS = "`-` and compressed files (gzip, xz, bzip2, zstd) work."
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Tokenized = Annotated[bool, typer.Option("--tokenized", help="The text is split already: split at spaces only.")]
Sentences = Annotated[
    bool,
    typer.Option(
        "--sentences",
        help="The text is running prose, its lines mean nothing: split it into sentences. Blank lines part paragraphs.",
    ),
]
Language = Annotated[
    str | None, typer.Option(metavar="CODE", help="With --sentences: the language, such as de (default: en).")
]
Device = Annotated[str, typer.Option(help="Where to compute: cpu, cuda, cuda:1, mps, …")]
OwnModel = Annotated[
    Path, typer.Option("--model", "-m", autocompletion=models, help="A model folder, as `prpn train` makes it.")
]
A_MODEL = f"A model folder, as `prpn train` makes it, or an embedded model's name (default: {DEFAULT})."
SomeModel = Annotated[Path, typer.Option("--model", "-m", show_default=False, autocompletion=models, help=A_MODEL)]
EMBEDDED = model_folder()
"""The model that is used where none is named."""


def reader_of(sentences: bool, language: str | None) -> Callable[[str], str]:
    """How the name of a text is given to those who read it."""
    if language is not None and not sentences:
        raise ConfigError("--language is for --sentences: say both, or neither")
    if not sentences:
        return str
    from prpn.text.sentences import in_sentences

    return lambda file: in_sentences(file, language or "en")


def print_json(value: dict[str, Any]) -> None:
    """Print one line of JSON."""
    print(legible(json.dumps(finite(value), ensure_ascii=False, allow_nan=False)))


def write_bytes(pieces: Iterable[bytes | memoryview]) -> None:
    """Write text that is UTF-8 already, at once."""
    if codecs.lookup(sys.stdout.encoding).name == "utf-8":
        sys.stdout.flush()
        sys.stdout.buffer.writelines(pieces)
    else:
        sys.stdout.writelines(str(piece, "utf-8") for piece in pieces)
    sys.stdout.flush()
