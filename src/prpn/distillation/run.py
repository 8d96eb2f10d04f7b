"""A whole distillation: parsers and raw text in, a folder with one parsing network out.

The folder holds `config.json` and `vocabulary.json` of the first parser, `parser.safetensors`, and `record.json`. It
parses. With the weights of a language model beside it, which must have the first parser's vocabulary, it also speaks.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prpn.config import Builder, save_recipe
from prpn.distillation.lessons import Lessons, read_lessons
from prpn.distillation.student import Student, gap_scores, splitting_loss
from prpn.embedded import CONFIG
from prpn.errors import ConfigError, InputError
from prpn.parsing.parser import DISTILLED, WEIGHTS, Parser, standard_deviation
from prpn.provenance import command, commit
from prpn.report.progress import counting
from prpn.text.atomic import replacing
from prpn.text.batches import alike_in_length
from prpn.training.checkpoint import write_tensors
from prpn.training.record import machine
from prpn.trees.from_distances import LEANING, build


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
        for name, least in (("sentences", 0), ("channels", 1), ("lookback", 0), ("lookahead", 0), ("epochs", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} = {getattr(self, name)}: give {least} or more")


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
    how, folder, began = how or StudentConfig(), Path(folder), time.monotonic()
    if not parsers:
        raise ConfigError("nobody to learn from: give one parser or more")
    if (folder / CONFIG).exists():
        raise InputError(str(folder), "already holds a model", "choose another --out")
    with counting("parsing", None, quiet) as progress:
        lessons = read_lessons(texts, parsers, builder, tokenized=tokenized, limit=how.sentences, progress=progress)
    learned, held_out = lessons.split(how.held_out)
    taught = builder or parsers[0].builder
    own: Builder = taught if taught in LEANING else "unbiased"
    vocabulary = parsers[0].vocabulary
    torch.manual_seed(how.seed)
    embedding = torch.from_numpy(parsers[0].network.rows.embedding)
    student = Student(embedding, how.channels, how.lookback, how.lookahead, how.dropout)
    with counting("learning", how.epochs * len(learned.ends), quiet) as progress:
        losses = _learn(student, learned, how, vocabulary.start, own, progress)
    agreement = _agreement(student, held_out, how, vocabulary.start, own)
    recipe = parsers[0].recipe
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary.save(folder / "vocabulary.json")
    outcome = {
        "command": command(),
        "commit": commit(),
        "teachers": len(parsers),
        "sentences": len(lessons.ends),
        "words": len(lessons.ids),
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
    for name, text in (("record.json", json.dumps(outcome, indent=1) + "\n"), ("README.md", _card(folder, outcome))):
        with replacing(folder / name) as file:
            file.write(text.encode())
    # Last, for it makes the folder a model folder: a distillation that was killed can begin again.
    save_recipe(replace(recipe, model=replace(recipe.model, builder=own)), folder / CONFIG)
    return {"model": str(folder), **outcome}


def _learn(
    student: Student,
    lessons: Lessons,
    how: StudentConfig,
    start: int,
    builder: Builder,
    progress: Callable[[int], object],
) -> list[float]:
    """Mean loss of each epoch. The learning rate falls to nothing over all of them."""
    student.train()
    optimizer = torch.optim.Adam(student.parameters(), fused=True)
    total, step, losses = how.epochs * -(-len(lessons.ends) // how.batch_size), 0, []
    for epoch in range(how.epochs):
        sum_of_losses = 0.0
        for ids, heights, mask in _batches(lessons, how, np.random.default_rng([how.seed, epoch])):
            for group in optimizer.param_groups:
                group["lr"] = how.learning_rate * (1 - step / total)
            scores = student(ids, start, mask)
            loss = splitting_loss(scores, heights, mask)
            if builder in LEANING:
                loss = (loss + splitting_loss(gap_scores(scores, mask, builder), heights, mask)) / 2
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            step, sum_of_losses = step + 1, sum_of_losses + loss.item() * len(ids)
            progress(len(ids))
        losses.append(sum_of_losses / len(lessons.ends))
    return losses


@torch.no_grad()
def _agreement(student: Student, lessons: Lessons, how: StudentConfig, start: int, builder: Builder) -> float:
    """The share of the crowd's constituents, of two words or more, that the student's trees have."""
    student.eval()
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
    student.eval()
    batches = ((student(ids, start, mask), mask) for ids, _, mask in _batches(lessons, how, None))
    return standard_deviation(
        row[own].double().numpy() for rows, mask in batches for row, own in zip(rows, mask, strict=True)
    )


def _card(folder: Path, outcome: Mapping[str, Any]) -> str:
    return f"""# {folder.name}

A parsing network that learned what {outcome["teachers"]} models agree on in raw text (`prpn distill`), and the language
model of the first of them.

| | |
|---|---|
| learned from | {outcome["sentences"]:,} sentences, {outcome["words"]:,} words |
| finds | {outcome["agreement"]:.1%} of the constituents of their consensus, in other sentences |
| builder | `{outcome["builder"]}` |
"""


def _batches(
    lessons: Lessons, how: StudentConfig, random: np.random.Generator | None
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Words, heights and mask (B, T) of some sentences at a time."""
    begins = np.concatenate([[0], lessons.ends[:-1]])
    lengths = lessons.ends - begins
    for chosen in alike_in_length(lengths, how.batch_size, random):
        columns = np.arange(lengths[chosen].max())
        mask = columns < lengths[chosen, None]  # (B, T)
        places = np.where(mask, begins[chosen, None] + columns, 0)
        ids, heights = lessons.ids[places].astype(np.int64), lessons.heights[places]
        yield torch.from_numpy(ids), torch.from_numpy(heights), torch.from_numpy(mask)
