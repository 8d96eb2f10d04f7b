"""Parsers with weights drawn at random, and what `prpn parse` should print, by Tree objects one line at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from prpn.config import Builder, ModelConfig, Recipe, TextConfig
from prpn.errors import InputError
from prpn.kernels import native
from prpn.parsing.parser import Parser
from prpn.text.files import read_lines
from prpn.text.vocabulary import Vocabulary
from prpn.trees.from_distances import build

needs_native = pytest.mark.skipif(native.library() is None, reason="no native core was built")
KERNELS = [pytest.param("fp32", marks=needs_native), "off"]
WORDS = ("the", "old", "man", "N", "n", "can", "not", "n't", "do", "Old", "<s>", "-LRB-", "é", "a", "b", "_", ".")


def random_parser(
    seed: int = 0,
    *,
    channels: int = 8,
    lookback: int = 3,
    size: int = 5,
    flavour: str = "released",
    text: TextConfig | None = None,
    scale: float = 1.0,
    unknown_classes: Sequence[str] = (),
) -> Parser:
    draw = np.random.default_rng(seed)
    vocabulary = Vocabulary(("<unk>", "</s>", *unknown_classes, *WORDS))

    def normal(*shape: int) -> np.ndarray:
        return (scale * draw.normal(size=shape)).astype(np.float32)

    total = channels if flavour == "paper" else 2 * channels
    weights = {
        "embedding.weight": normal(len(vocabulary), size),
        "parsing.convolution.weight": normal(total, size, lookback + 1),
        "parsing.convolution.bias": normal(total),
        "parsing.norm.weight": normal(total),
        "parsing.norm.bias": normal(total),
        "parsing.norm.running_mean": normal(total),
        "parsing.norm.running_var": draw.uniform(0.1, 1, total).astype(np.float32),
        "parsing.heads.weight": normal(2, channels, 1),
        "parsing.heads.bias": normal(2),
        "parsing.distance_scale": np.array(scale / 3, dtype=np.float32),
    }
    config = ModelConfig(flavour=flavour, embedding=size, hidden=2 * channels, lookback=lookback)  # type: ignore[arg-type]
    return Parser(Recipe("random", text=text or TextConfig(tokenizer="none"), model=config), vocabulary, weights)


def expected_lines(parser: Parser, path: Path, form: str, builder: Builder, tokenized: bool) -> Iterator[str]:
    for _, line in read_lines(path):
        words = [] if isinstance(line, InputError) else parser.words(line, tokenized)
        scores = parser.scores([words])[0]
        tree, distances = build(words, parser.in_units(scores, builder), builder), parser.activated(scores).tolist()
        brackets = tree.brackets() if tree.words else ""
        if form == "jsonl":
            fields = {
                "words": tree.words,
                "tree": brackets,
                "spans": tree.spans(),
                "distances": [round(distance, 6) for distance in distances],
                "offsets": [] if isinstance(line, InputError) else parser.offsets(line, tokenized),
            }
            if isinstance(line, InputError):
                fields["error"] = str(line)
            yield json.dumps(fields, ensure_ascii=False)
        elif form == "labelled":
            yield tree.labelled() if tree.words else ""
        else:
            yield brackets if form == "brackets" else " ".join(f"{start}-{end}" for start, end in tree.spans())
