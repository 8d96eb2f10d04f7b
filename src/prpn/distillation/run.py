"""A whole distillation: parsers and raw text in, a folder with one parsing network out.

The folder holds `config.json` and `vocabulary.json` of the first parser, `parser.safetensors`, and `record.json`. It
parses. With the weights of a language model beside it, which must have the first parser's vocabulary, it also speaks.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prpn.config import Builder, save_recipe
from prpn.distillation.lessons import Lessons, mark_lessons, tree_lessons
from prpn.distillation.student import Student, gap_scores, mark_loss, splitting_loss
from prpn.errors import ConfigError, InputError
from prpn.models.files import CONFIG, DISTILLED, WEIGHTS, shown
from prpn.models.weights import read_network
from prpn.parsing.folded import Folded
from prpn.parsing.parser import Parser, standard_deviation
from prpn.provenance import command, commit
from prpn.report.progress import counting
from prpn.text import fitness
from prpn.text.atomic import replacing
from prpn.text.batches import alike_in_length
from prpn.text.files import STANDARD_INPUT
from prpn.training.checkpoint import write_tensors
from prpn.training.folder import make_folder
from prpn.training.lock import only_run
from prpn.training.process import random_numbers_apart
from prpn.training.record import machine
from prpn.trees.from_distances import LEANING, build

LEFT_BEHIND = frozenset(["vocabulary.json", WEIGHTS, DISTILLED, "record.json", "training"])
"""What is in a folder whose distillation was killed."""
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Of scores, targets and mask, (B, T) each."""


@dataclass(frozen=True)
class StudentConfig:
    """How a student is made."""

    channels: int = 400
    lookback: int = 2
    lookahead: int = 5
    dropout: float = 0.3
    sentences: int = 0
    """How many of the text's first sentences are learned from; 0: all."""
    epochs: int = 3
    batch_size: int = 64
    learning_rate: float = 0.004
    held_out: float = 0.02
    """Share of the sentences, from the end, that say how well the student has learned."""
    seed: int = 1

    def __post_init__(self) -> None:
        for name, least, most in (
            ("sentences", 0, sys.maxsize), ("channels", 1, 100_000), ("lookback", 0, 1000), ("lookahead", 0, 1000),
            ("epochs", 1, 1_000_000), ("seed", 0, 2**64 - 1),
        ):  # fmt: skip
            if getattr(self, name) < least:
                raise ConfigError(f"{name} = {getattr(self, name)}: give {least} or more")
            if getattr(self, name) > most:
                raise ConfigError(f"{name} = {shown(getattr(self, name))}: give at most {most:,}")


def distill(
    parsers: Sequence[Parser],
    texts: Sequence[str],
    folder: str | Path,
    how: StudentConfig | None = None,
    *,
    builder: Builder | None = None,
    tokenized: bool = False,
    language_model: Path | None = None,
    quiet: bool = False,
) -> dict[str, Any]:
    """Teach a student what the parsers agree on in these texts; what came out, as JSON-ready values.

    `language_model` is the folder of the first parser, if its language model shall come along.
    """
    how, folder = how or StudentConfig(), Path(folder)
    if not parsers:
        raise ConfigError("nobody to learn from: give one parser or more")
    for parser in parsers:
        if not parser.scale:
            cause = "the spread of its distances was not measured"
            raise InputError(parser.place, cause, "finish its training with --resume, with more held-out text")
        parser.require_words()
    if language_model is not None and (weights := language_model / WEIGHTS).exists():  # before the work, not after it
        read_network(weights, parsers[0].recipe.model, len(parsers[0].vocabulary))
    for text in texts:
        if text != STANDARD_INPUT and not Path(text).exists():
            raise InputError(text, "no such file", "give text with one sentence a line")
        if not Path(text).is_file():
            raise InputError(text, "no file that can be read twice", "give text in a file")
        fitness.warn(text, parsers[0].tokenizer_for(tokenized), parsers[0].vocabulary)
    _make(folder)
    with only_run(folder) as require_here, random_numbers_apart(how.seed):
        outcome = _distilled(parsers, texts, folder, how, builder, tokenized, language_model, quiet)
        require_here()
    return outcome


def _distilled(
    parsers: Sequence[Parser],
    texts: Sequence[str],
    folder: Path,
    how: StudentConfig,
    builder: Builder | None,
    tokenized: bool,
    language_model: Path | None,
    quiet: bool,
) -> dict[str, Any]:
    began = time.monotonic()
    taught = builder or parsers[0].builder
    own: Builder = taught if taught in LEANING else "unbiased"
    vocabulary = parsers[0].vocabulary
    with counting("reading", None, quiet) as progress:
        of_marks = mark_lessons(texts, parsers[0], tokenized=tokenized, limit=how.sentences, progress=progress)
    of_text, mark_losses = _learned(parsers[0], of_marks, how, mark_loss, "learning marks", quiet)
    arrays = {name: value.numpy() for name, value in of_text.state_dict().items()}
    marks = Folded(arrays, vocabulary.start, how.lookahead)
    with counting("parsing", None, quiet) as progress:
        lessons = tree_lessons(
            texts, parsers, marks, builder, tokenized=tokenized, limit=how.sentences, progress=progress
        )
    learned, held_out = lessons.split(how.held_out)
    student, losses = _learned(parsers[0], learned, how, _loss_through(own), "learning trees", quiet)
    agreement = _agreement(student, held_out, how, vocabulary.start, own)
    recipe = parsers[0].recipe
    vocabulary.save(folder / "vocabulary.json")
    outcome = {
        "command": command(),
        "commit": commit(),
        "teachers": [Path(parser.place).parent.name or parser.place for parser in parsers],
        "taught_through": taught,
        "sentences": len(lessons.ends),
        "words": len(lessons.ids),
        "mark_losses": mark_losses,
        "losses": losses,
        "agreement": agreement,
        "seconds": round(time.monotonic() - began, 1),
        "student": asdict(how),
        "builder": own,
        "machine": machine(),
    }
    if language_model is not None and (language_model / WEIGHTS).is_file():
        shutil.copyfile(language_model / WEIGHTS, folder / WEIGHTS)
    # What leans is taught in its own units; the scores of others must be brought to them.
    scale = 1.0 if own in LEANING else _spread(student, held_out, how, vocabulary.start)
    weights = student.state_dict() | {"parsing.distance_scale": torch.tensor(scale)}
    write_tensors(folder / DISTILLED, weights, {"lookahead": how.lookahead})
    with replacing(folder / "record.json") as file:
        file.write(f"{json.dumps(outcome, indent=1)}\n".encode())
    # After all else, for it makes the folder a model folder: a distillation that was killed can begin again.
    save_recipe(replace(recipe, model=replace(recipe.model, builder=own)), folder / CONFIG)
    with replacing(folder / "README.md") as file:
        file.write(_card(folder, outcome).encode())
    return {"model": str(folder), **outcome}


def _make(folder: Path) -> None:
    """The folder, before hours of work; what a distillation that was killed has left in it is written anew."""
    make_folder(folder)
    found = {path.name for path in folder.iterdir()}
    if CONFIG in found:
        raise InputError(str(folder), "already holds a model", "choose another --out")
    if not all(name in LEFT_BEHIND or name.endswith(".tmp") for name in found):
        raise InputError(str(folder), "holds other files", "choose another --out")


def _learned(
    parser: Parser, lessons: Lessons, how: StudentConfig, loss_of: Loss, title: str, quiet: bool
) -> tuple[Student, list[float]]:
    """A student, and the mean loss of each epoch. The learning rate falls to nothing over all of them."""
    embedding = torch.from_numpy(parser.network.rows.embedding)
    student = Student(embedding, how.channels, how.lookback, how.lookahead, how.dropout)
    optimizer = torch.optim.Adam(student.parameters(), fused=True)
    total, step, losses = how.epochs * -(-len(lessons.ends) // how.batch_size), 0, []
    with counting(title, how.epochs * len(lessons.ends), quiet) as progress:
        for epoch in range(how.epochs):
            sum_of_losses = 0.0
            for ids, targets, mask in _batches(lessons, how, np.random.default_rng([how.seed, epoch])):
                for group in optimizer.param_groups:
                    group["lr"] = how.learning_rate * (1 - step / total)
                loss = loss_of(student(ids, parser.vocabulary.start, mask), targets, mask)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                step, sum_of_losses = step + 1, sum_of_losses + loss.item() * len(ids)
                progress(len(ids))
            losses.append(sum_of_losses / len(lessons.ends))
    return student.eval(), losses


def _loss_through(builder: Builder) -> Loss:
    """What teaches trees that are built so: half of it without the lean, if there is one."""

    def loss(scores: Tensor, heights: Tensor, mask: Tensor) -> Tensor:
        plain = splitting_loss(scores, heights, mask)
        if builder not in LEANING:
            return plain
        return (plain + splitting_loss(gap_scores(scores, mask, builder), heights, mask)) / 2

    return loss


@torch.no_grad()
def _agreement(student: Student, lessons: Lessons, how: StudentConfig, start: int, builder: Builder) -> float:
    """The share of the crowd's constituents, of two words or more, that the student's trees have."""
    same = total = 0
    for ids, heights, mask in _batches(lessons, how, None):
        for row, target, own in zip(student(ids, start, mask).numpy(), heights.numpy(), mask.numpy(), strict=True):
            words = ["x"] * int(own.sum())
            found = set(build(words, row[own].astype(float), builder).spans())
            wanted = set(build(words, target[own].astype(float), "unbiased").spans())
            same, total = same + len(found & wanted), total + len(wanted)
    return same / total


@torch.no_grad()
def _spread(student: Student, lessons: Lessons, how: StudentConfig, start: int) -> float:
    """The standard deviation of a student's scores."""
    batches = ((student(ids, start, mask), mask) for ids, _, mask in _batches(lessons, how, None))
    return standard_deviation(
        row[own].double().numpy() for rows, mask in batches for row, own in zip(rows, mask, strict=True)
    )


def _card(folder: Path, outcome: Mapping[str, Any]) -> str:
    return f"""# {folder.resolve().name}

A parsing network that learned the trees that {" and ".join(outcome["teachers"])} and marks suggest for raw text (`prpn
distill`), and the language model of the first.

| | |
|---|---|
| learned from | {outcome["sentences"]:,} sentences, {outcome["words"]:,} words |
| finds | {outcome["agreement"]:.1%} of the constituents of such trees, in other sentences |
| builder | `{outcome["builder"]}` |
"""


def _batches(
    lessons: Lessons, how: StudentConfig, random: np.random.Generator | None
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Words, targets and mask (B, T) of some sentences at a time."""
    begins = np.concatenate([[0], lessons.ends[:-1]])
    lengths = lessons.ends - begins
    for chosen in alike_in_length(lengths, how.batch_size, random):
        columns = np.arange(lengths[chosen].max())
        mask = columns < lengths[chosen, None]  # (B, T)
        places = np.where(mask, begins[chosen, None] + columns, 0)
        ids, targets = lessons.ids[places].astype(np.int64), lessons.targets[places]
        yield torch.from_numpy(ids), torch.from_numpy(targets), torch.from_numpy(mask)
