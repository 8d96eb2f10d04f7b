"""What an experiment reads of the files it has found: texts as each system wants them, and treebanks.

file ─┬─ a text ──────────────────────────> its files, or a copy without punctuation
      ├─ a treebank, read as a text ──────> its words and punctuation, one sentence a line
      └─ a treebank ──────────────────────> its trees, all or every second one
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from prpn.config import load_recipe
from prpn.report.progress import counting
from prpn.reproduction.experiments import Role, TrainedSystem
from prpn.reproduction.files import FoundFile
from prpn.text.atomic import replacing
from prpn.text.files import read_lines
from prpn.text.tokenizer import Tokenizer
from prpn.trees.cleaning import Cleaning, Treebank, is_word, load_treebank


def names_of(files: Mapping[Role, FoundFile], role: Role) -> list[str]:
    """The files that play a role, if there are any."""
    return [str(path) for path in files[role].paths] if role in files else []


def name_of(files: Mapping[Role, FoundFile], role: Role) -> str | None:
    """The first of them."""
    return next(iter(names_of(files, role)), None)


def lines_of(files: Mapping[Role, FoundFile], role: Role) -> Iterable[str]:
    """The sentences of a text; of trees words and punctuation."""
    found, names = files[role], names_of(files, role)
    if found.needed.words:
        return (sentence.line for sentence in load_treebank(names, Cleaning(keep="all")).counted())
    return (line for name in names for _, line in read_lines(name) if isinstance(line, str))


def texts_of(
    system: TrainedSystem, tokenized: bool, files: Mapping[Role, FoundFile], role: Role, out: Path, quiet: bool
) -> list[str]:
    """The files of a text as a system reads it: trees as their words, and without punctuation if it reads none."""
    if role not in files:
        return []
    found = files[role]
    if system.punctuation and not found.needed.words:
        return names_of(files, role)
    tokenizer = Tokenizer(load_recipe(system.recipe).override(system.set).text, tokenized)
    kind = "none" if tokenized else tokenizer.config.tokenizer
    path = out / "texts" / f"{found.sha256 or role}-{kind}-{'marked' if system.punctuation else 'bare'}.txt"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file, counting(f"writing {path.name}", None, quiet) as progress:
            for line in lines_of(files, role):
                words = [word for word in tokenizer.words(line) if system.punctuation or is_word(word)]
                file.write((" ".join(words) + "\n").encode())
                progress(1)
    return [str(path)]


def treebank_of(file: FoundFile, maximum: int | None) -> Treebank:
    """The trees that are scored, of at most so many words each."""
    loaded = load_treebank(list(file.paths), Cleaning(maximum=maximum))
    half = file.needed.half
    if not half:
        return loaded
    first = 0 if half == "odd" else 1  # lines are counted from one
    return replace(loaded, name=f"{loaded.name}, {half} lines", sentences=loaded.sentences[first::2])
