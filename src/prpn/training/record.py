"""The record of a run: what was done, on what, by which code, with what result; and the model card made from it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from prpn import kernels, provenance
from prpn.config import Recipe
from prpn.errors import InputError
from prpn.models.files import CARD, RECORD, finite, read_json
from prpn.text.atomic import replacing
from prpn.training.data import Data
from prpn.training.evaluate import LanguageScore
from prpn.training.metrics import read_metrics


def machine() -> dict[str, Any]:
    """What the run ran on, as far as it matters to speed and to repeating it."""
    return {
        **provenance.machine(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "kernels": kernels.described(),
    }


def peak_memory_gib() -> float:
    """Largest resident memory of this process so far."""
    import resource  # not on every system

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def score_json(score: LanguageScore) -> dict[str, Any]:
    """A score by the names that scripts read."""
    return {
        "perplexity": score.perplexity,
        "bits_per_character": score.bits_per_character,
        "tokens": score.tokens,
        "unknown": score.unknown,
        "loss": score.loss,
    }


def write_record(folder: Path, recipe: Recipe, data: Data, final: LanguageScore, outcome: dict[str, Any]) -> None:
    """Write record.json: the whole run in one file, fit to be kept among the results."""
    record = {
        "command": provenance.command(),
        **outcome,
        "recipe": recipe.to_json(),
        "data": {
            "training": {"sha256": data.training.checksum, "tokens": len(data.training.ids)},
            "validation": {"sha256": data.validation.checksum, "tokens": len(data.validation.ids)},
            "vocabulary": len(data.vocabulary),
        },
        "machine": machine(),
        "validation": {**score_json(final), "protocol": protocol(recipe)},
        "metrics": read_metrics(folder),
    }
    with replacing(folder / RECORD) as file:
        file.write((json.dumps(finite(record), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())


def read_record(folder: Path) -> dict[str, Any]:
    """What record.json holds; nothing where there is none that can be read."""
    try:
        record = read_json(folder / RECORD)
    except InputError:
        return {}
    return record if isinstance(record, dict) else {}


def finished_run(
    folder: Path, recipe: Recipe, texts: Sequence[str], validation: str | None
) -> dict[str, Any] | None:  # fmt: skip
    """The record of a run that ended in this folder, if recipe and texts were these; a run that goes on has none."""
    record = read_record(folder)
    if record.get("recipe") != recipe.to_json():
        return None
    given = {"training": texts, "validation": [validation] if validation else []}
    read = {role: provenance.checksum(files) for role, files in given.items() if files}
    return record if all(record["data"][role]["sha256"] == checksum for role, checksum in read.items()) else None


def protocol(recipe: Recipe) -> str:
    """How a reported figure was measured."""
    if recipe.training.batching == "sentences":
        return "each sentence by itself, every token and sentence end counted once"
    return "one stream, state carried, every token counted once"


def write_card(folder: Path, recipe: Recipe, data: Data, final: LanguageScore, outcome: dict[str, Any]) -> None:
    """Write README.md, the model card."""
    model, kind = recipe.model, "characters" if recipe.text.tokenizer == "characters" else "words"
    lines = [
        f"# {folder.resolve().name}",
        "",
        f"A Parsing-Reading-Predict Network over {kind}, made by `prpn train {recipe.name}`. {recipe.description}",
        "",
        "| | |",
        "|---|---|",
        f"| flavour | `{model.flavour}`, {model.gates} gates, temperature {model.temperature:g} |",
        f"| size | {model.layers} layers, hidden {model.hidden}, embedding {model.embedding}, "
        f"{model.memory_slots} memory slots, look-back {model.lookback} |",
        f"| parsing network / reading attention / predict attention | "
        f"{_on(model.parsing)} / {_on(model.reading_attention)} / {_on(model.predict_attention)} |",
        f"| vocabulary | {len(data.vocabulary):,} {kind} |",
        f"| trained on | {len(data.training.ids):,} tokens, SHA-256 `{data.training.checksum[:16]}…` |",
        f"| training | {outcome['steps']:,} steps, {outcome['epochs']:.2f} epochs, seed {recipe.training.seed} |",
        f"| held-out perplexity | {final.perplexity:.2f} |",
        f"| held-out bits per character | {final.bits_per_character:.4f} |",
        f"| held-out tokens | {final.tokens:,}, of which {final.unknown:,} unknown |",
        "",
        f"Measured on the weights with the best held-out loss: {protocol(recipe)}.",
        "",
        "Read it with `prpn info FOLDER`, measure it with `prpn perplexity FILE --model FOLDER`, where FOLDER is the "
        "folder of this card.",
        "",
    ]
    with replacing(folder / CARD) as file:
        file.write("\n".join(lines).encode())


def _on(flag: bool) -> str:
    return "on" if flag else "off"
