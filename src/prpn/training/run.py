"""A whole run: text in, model folder out."""

from __future__ import annotations

import re
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import torch

from prpn.config import Recipe, read_saved_recipe, save_recipe
from prpn.errors import ConfigError
from prpn.model import PRPN
from prpn.model.parsing import ParsingNetwork
from prpn.models.files import CONFIG, WEIGHTS
from prpn.models.folder import model_folder
from prpn.parsing.parser import Parser, standard_deviation
from prpn.provenance import commit
from prpn.report.progress import counting
from prpn.text import fitness
from prpn.text.files import refuse_standard_input_twice
from prpn.text.tokenizer import Tokenizer
from prpn.text.vocabulary import Vocabulary
from prpn.training.checkpoint import arrays_of, load_weights, read_weights, weights_of, write_tensors
from prpn.training.data import Data, prepare
from prpn.training.display import Display, duration, loss_text
from prpn.training.evaluate import score
from prpn.training.folder import MADE_AT_THE_END, make_folder, refuse_used, require_whole, writable
from prpn.training.lock import only_run, refuse_running
from prpn.training.loop import Trainer
from prpn.training.process import in_own_thread, random_numbers_apart
from prpn.training.record import peak_memory_gib, protocol, score_json, write_card, write_record
from prpn.training.signals import StopRequest
from prpn.training.watch import TreebankWatch

SCALE_TOKENS = 100_000
"""Of held-out text, enough to measure the standard deviation of distances."""


def train(
    recipe: Recipe, folder: str | Path, *, stop: StopRequest | None = None, **options: Unpack[Options]
) -> dict[str, Any]:
    """Train a model into `folder`; what came out, as JSON-ready values.

    It leaves the process as it was; `own_process` gives it more, and a way to stop.
    """
    request = stop or StopRequest()

    def run() -> dict[str, Any]:
        with random_numbers_apart(recipe.training.seed):
            return _trained(recipe, folder, request, **options)

    return in_own_thread(run, request)


class Options(TypedDict, total=False):
    """What a run is given besides recipe and folder."""

    texts: Sequence[str]
    validation: str | None
    treebanks: Sequence[str]
    tokenized: bool
    initial: str | Path | None
    resume: bool
    device: str
    quiet: bool


def _trained(
    recipe: Recipe,
    folder: str | Path,
    stop: StopRequest,
    *,
    texts: Sequence[str] = (),
    validation: str | None = None,
    treebanks: Sequence[str] = (),
    tokenized: bool = False,
    initial: str | Path | None = None,
    resume: bool = False,
    device: str = "cpu",
    quiet: bool = False,
) -> dict[str, Any]:
    began, folder, place, started_from = time.monotonic(), Path(folder), usable_device(device), commit()
    with writable(folder):
        refuse_used(folder, resume)
        refuse_running(folder)
    start = model_folder(initial) if initial else None
    vocabulary = _vocabulary_of(start, recipe) if start else None
    refuse_standard_input_twice([*texts, validation or "", *treebanks])
    watch = TreebankWatch(treebanks, recipe) if treebanks else None  # before the text, which may be long
    for text in (*texts, *([] if validation is None else [validation])):
        fitness.warn(text, Tokenizer(recipe.text, tokenized), vocabulary)
    size = sum(map(_size_of_file, texts))
    with counting("reading text", None if not size else 2 * size, quiet) as progress:
        data = prepare(
            recipe, texts, validation, tokenized=tokenized, vocabulary=vocabulary, progress=progress
        )  # fmt: skip
    with _within_memory(recipe, data):
        network = PRPN(recipe.model, len(data.vocabulary)).to(place)
    if start:
        weights = read_weights(start / WEIGHTS, recipe.model, len(data.vocabulary))
        load_weights(network, weights, str(start))
    trainer = Trainer(recipe, data, network, folder, watch)
    in_characters = recipe.text.tokenizer == "characters"
    display = Display(trainer.total_steps, in_characters, quiet)
    make_folder(folder)
    with writable(folder), only_run(folder) as require_here:
        trainer.before_writing = require_here
        refuse_used(folder, resume)  # again: another run may have been here while the text was read
        _learn(trainer, display, resume, stop)
        position = trainer.position
        with counting("scoring the held-out text", len(data.validation.ids), quiet) as progress:
            final = score(network, data.validation, data.vocabulary, recipe.training, progress=progress)
        require_here()
        if isinstance(network.parsing, ParsingNetwork):
            network.parsing.distance_scale.fill_(_scale_of_distances(network, recipe, data))
            write_tensors(trainer.best_weights, weights_of(network))
        outcome = {
            "commit": started_from,
            "steps": position.step,
            "epochs": position.step / trainer.batches_an_epoch,
            "tokens_seen": position.tokens,
            "seconds": round(position.seconds, 1),
            "wall_seconds": round(time.monotonic() - began, 1),
            "best_step": position.best_step,
            "finished": "early stopping" if position.step < trainer.total_steps else "budget spent",
            "peak_memory_gib": round(peak_memory_gib(), 2),
        }
        write_record(folder, recipe, data, final, outcome)
        write_card(folder, recipe, data, final, outcome)
        require_whole(folder)
        require_here()
    display.say(
        f"{position.step:,} steps in {duration(position.seconds)}, "
        f"{position.tokens / max(position.seconds, 1e-9):,.0f} tokens/s, peak memory {peak_memory_gib():.2f} GiB"
        + _whole_recipe(trainer)
    )
    display.say(f"held-out {loss_text(final.loss, in_characters)} ({protocol(recipe)}), saved in {folder}")
    return {"model": str(folder), **outcome, "validation": score_json(final)}


def usable_device(name: str) -> torch.device:
    """The device of this name, if this machine has it."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        cause = str(error).strip().splitlines()[0]
        raise ConfigError(f"--device {name} cannot be used here ({cause}); use cpu") from None
    return device


def _learn(trainer: Trainer, display: Display, resume: bool, stop: StopRequest) -> None:
    """Begin or go on, to the end of the budget."""
    folder = trainer.folder
    if resume and trainer.checkpoint.exists():
        trainer.resume()
    else:
        trainer.metrics.cut(0)
    for leftover in [*folder.rglob(".*.tmp"), *(folder / name for name in MADE_AT_THE_END)]:
        leftover.unlink(missing_ok=True)  # what a kill or an earlier leg left: all will be written anew
    if not trainer.finished:
        (folder / "cache.json").unlink(missing_ok=True)  # tuned for weights that will be no more
    save_recipe(trainer.recipe, folder / CONFIG)
    trainer.data.vocabulary.save(folder / "vocabulary.json")
    display.say(_summary(trainer))
    if trainer.position.step:
        display.say(f"going on from step {trainer.position.step:,}")
    with display:
        trainer.run(display, stop)


def _scale_of_distances(network: PRPN, recipe: Recipe, data: Data) -> float:
    """Standard deviation of the distances of held-out text before their activation, each line read by itself."""
    parser = Parser(recipe, data.vocabulary, arrays_of(network))
    ids = data.validation.ids[:SCALE_TOKENS]
    lines = np.split(ids, np.flatnonzero(ids == data.vocabulary.end) + 1)
    words = [line[line != data.vocabulary.end] for line in lines]
    return standard_deviation(parser.scores_of_ids(np.concatenate(words).astype(np.int32), list(map(len, words))))


@contextmanager
def _within_memory(recipe: Recipe, data: Data) -> Iterator[None]:
    """Report weights that memory has no room for as a matter of their sizes."""
    try:
        yield
    except (RuntimeError, TypeError) as error:
        if not re.search("allocat|overflow|out of memory", str(error), re.IGNORECASE):
            raise
        sizes = f"model.hidden = {recipe.model.hidden}, model.embedding = {recipe.model.embedding}"
        cause = f"{sizes}, vocabulary {len(data.vocabulary):,}: does not fit into memory"
        raise ConfigError(f"{cause}; give smaller ones") from None


def _size_of_file(path: str) -> int:
    """Its bytes; none if it is another thing, or cannot be read: whoever reads it will say what is wrong."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _vocabulary_of(initial: Path, recipe: Recipe) -> Vocabulary:
    """The vocabulary of the model to start from, which must be of the recipe's kind."""
    saved = read_saved_recipe(initial / CONFIG)
    if saved.model.shape != recipe.model.shape:
        raise ConfigError(f"--init {initial}: its network is not the recipe's; give its own recipe ({saved.name})")
    for key in ("tokenizer", "lowercase", "digits", "line_ends"):
        if getattr(saved.text, key) != getattr(recipe.text, key):
            raise ConfigError(f"--init {initial}: its text.{key} is another; give its own recipe ({saved.name})")
    return Vocabulary.load(initial / "vocabulary.json")


def _summary(trainer: Trainer) -> str:
    data, name = trainer.data, trainer.recipe.name
    parameters = sum(p.numel() for p in trainer.network.parameters())
    return (
        f"{name}: {len(data.training.ids):,} tokens to learn from, {len(data.validation.ids):,} held out, "
        f"vocabulary {len(data.vocabulary):,}, {parameters:,} parameters, {trainer.total_steps:,} steps"
    )


def _whole_recipe(trainer: Trainer) -> str:
    """How long all epochs would take, when fewer steps were asked for."""
    epochs, position = trainer.config.epochs, trainer.position
    steps = epochs * trainer.batches_an_epoch
    if steps <= trainer.total_steps:
        return ""
    return f"; all {epochs} epochs ({steps:,} steps) would take {duration(position.seconds / position.step * steps)}"
