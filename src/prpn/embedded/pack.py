"""A model folder in half the space: weights as fp16, and nothing of its training.

Matrices are stored as fp16, the few other numbers as they are; a model is read as fp32 again, and takes part in
everything as before. Rounding moves a weight by at most a two-thousandth of itself, or by 3·10⁻⁸ if it is tiny, so that
only distances that nearly tie change places: how many trees that changes is counted. What else lies in the folder, such
as its card and attributions, comes along.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from torch import Tensor

from prpn.config import read_saved_recipe
from prpn.errors import InputError
from prpn.models.files import (
    CONFIG,
    DISTILLED,
    LARGEST_TEXT,
    METRICS,
    RECORD,
    VOCABULARY,
    WEIGHTS,
    require_regular,
)
from prpn.models.folder import model_folder
from prpn.models.weights import read_network
from prpn.parsing.parser import Parser
from prpn.text.vocabulary import Vocabulary
from prpn.training.checkpoint import read_tensors, write_tensors
from prpn.training.folder import make_folder

LEFT_OUT = (METRICS, RECORD)
"""Files of a model folder that tell of its training."""


def pack(model: str | Path, out: Path) -> int:
    """Write a smaller copy of a model into a new folder; its size in bytes."""
    folder = model_folder(model)
    weights = [name for name in (WEIGHTS, DISTILLED) if (folder / name).is_file()]
    if not weights:
        raise InputError(str(folder), "has no weights", "finish its training with --resume")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(str(out), "is there already", "choose another --out")
    others = sorted(folder.iterdir(), key=lambda path: path.name == CONFIG)  # which makes it a model folder: last
    others = [path for path in others if path.is_file() and path.name not in (*weights, *LEFT_OUT)]
    for path in others:
        _require_own(path)
    recipe, vocabulary = read_saved_recipe(folder / CONFIG), Vocabulary.load(folder / VOCABULARY)
    if DISTILLED in weights:  # what is handed on has been looked at
        Parser.load(folder)
    if WEIGHTS in weights:
        read_network(folder / WEIGHTS, recipe.model, len(vocabulary))
    make_folder(out)
    for name in weights:
        tensors, header = read_tensors(folder / name)
        write_tensors(out / name, {key: _halved(tensor) for key, tensor in tensors.items()}, header)
    for path in others:
        shutil.copyfile(path, out / path.name)
    return sum(path.stat().st_size for path in out.iterdir())


def _require_own(path: Path) -> None:
    """Refuse what does not belong to a model: a link may lead to any file of whoever packs, and be handed on."""
    if path.is_symlink() and path.name not in (CONFIG, VOCABULARY):  # which are read and checked
        raise InputError(str(path), "is a link", "put the file that it leads to in its place")
    if require_regular(path) > LARGEST_TEXT:
        raise InputError(str(path), "is too large for a part of a model", "take it out of the folder")


def share_of_changed_trees(
    first: str | Path, second: str | Path, sentences: Sequence[str], tokenized: bool = False
) -> float:  # fmt: skip
    """The share of sentences to which two models give different trees."""
    pairs = zip(*(_trees(Parser.load(model), sentences, tokenized) for model in (first, second)), strict=True)
    return sum(a != b for a, b in pairs) / len(sentences)


def _trees(parser: Parser, lines: Iterable[str], tokenized: bool) -> list[str]:
    return [parsed.tree.brackets() for parsed in parser.parse_many(lines, tokenized=tokenized)]


def _halved(tensor: Tensor) -> Tensor:
    if not tensor.is_floating_point() or tensor.ndim < 2:
        return tensor
    half = tensor.half()
    return half if bool(half.isfinite().all()) else tensor  # fp16 ends at 65,504
