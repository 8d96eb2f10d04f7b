"""A recipe that trains in a blink, a text for it, and what must be equal between two runs that are the same."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from prpn.config import Recipe, recipe_from
from prpn.training.checkpoint import read_tensors
from prpn.training.run import train

RECIPE = recipe_from(
    {
        "text": {"tokenizer": "none", "held_out": 0.1},
        "model": {
            "embedding": 8,
            "hidden": 8,
            "layers": 1,
            "lookback": 2,
            "memory_slots": 3,
            "dropout_in_out": 0.2,
            "dropout_between": 0.1,
            "dropout_recurrent": 0.2,
            "dropout_attention": 0.1,
        },
        "training": {
            "batch_size": 4,
            "bptt": 6,
            "epochs": 2,
            "learning_rate": 0.02,
            "evaluate_every": 4,
            "checkpoint_every": 3,
        },
    },
    "tiny",
)
MODES = {
    "stream": (),
    "stream, averaged": ("training.average=0.9",),
    "stream, regularised": (
        "training.bptt_jitter=0.5",
        "training.activity_penalty=2",
        "training.change_penalty=1",
        "model.dropout_weights=0.3",
        "model.dropout_locked=true",
    ),
    "sentences": ("training.batching=sentences",),
    "sentences, averaged": ("training.batching=sentences", "training.average=0.9"),
}
WORDS = ["the", "a", "old", "young", "man", "dog", "bench", "sat", "ran", "on", "in", "saw", "."]


def recipe(*assignments: str) -> Recipe:
    return RECIPE.override(assignments)


def toml(path: Path, *assignments: str) -> Path:
    """The recipe as a file, for the command line."""
    sections = {key: value for key, value in recipe(*assignments).to_json().items() if isinstance(value, dict)}
    lines: list[str] = []
    for section, values in sections.items():
        lines += [f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def sentences(count: int, seed: int = 0) -> str:
    """Lines of one to seven words, all of them known after a few dozen lines."""
    draw = random.Random(seed)
    return "".join(" ".join(draw.choices(WORDS, k=draw.randint(1, 7))) + "\n" for _ in range(count))


def write_text(path: Path, count: int = 50, seed: int = 0) -> Path:
    path.write_text(sentences(count, seed), encoding="utf-8")
    return path


def run(folder: Path, text: Path, *assignments: str, **options: Any) -> dict[str, Any]:
    return train(recipe(*assignments), folder, texts=[str(text)], quiet=True, **options)


def metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl without the time they took."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{key: value for key, value in json.loads(line).items() if key != "seconds"} for line in lines]


def outcome(folder: Path) -> dict[str, Any]:
    """All that a run is judged by: best weights, last state of the run, metrics, configuration and vocabulary."""
    tensors, header = read_tensors(folder / "training" / "checkpoint.safetensors")
    position = {key: value for key, value in header["position"].items() if key not in ("seconds", "metrics_size")}
    return {
        "best weights": (folder / "model.safetensors").read_bytes(),
        "tensors": {name: (tensor.dtype, tensor.numpy().tobytes()) for name, tensor in tensors.items()},
        "position": position,
        "identity": header["identity"],
        "metrics": metrics(folder),
        "config": (folder / "config.json").read_bytes(),
        "vocabulary": (folder / "vocabulary.json").read_bytes(),
    }


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The names of what is not the same in two outcomes: short to read where the outcomes are long."""
    return [name for name in one if one[name] != other[name]]


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
