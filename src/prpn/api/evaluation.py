"""Scoring models on a treebank by one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prpn.api.model import Model
from prpn.config import Builder
from prpn.errors import InputError
from prpn.parsing.parser import Parser
from prpn.trees.cleaning import Cleaning, load_treebank
from prpn.trees.evaluation import Evaluation, common_builder, evaluate_parsers
from prpn.trees.protocols import protocols_named


def evaluate(
    model: Model | Parser | Sequence[Model | Parser],
    treebank: str | Path | Sequence[str | Path],
    *,
    builder: Builder | None = None,
    protocols: str | Sequence[str] = (),
    maximum_words: int | None = None,
) -> Evaluation:
    """Score models on a treebank: every protocol unless some are named, beside every baseline.

    `evaluate(model, "wsj.mrg").systems["model"]["kim"].f1` is in percent; several models are `model 1`, `model 2`, …

    Args:
        model: One model, or several of them.
        treebank: A file or folder of bracketed trees, or several.
        builder: How distances become trees; the models' own unless one is named.
        protocols: Names of protocols, such as `kim`; all unless some are named.
        maximum_words: Leave out sentences of more words.

    """
    models = [model] if isinstance(model, Model | Parser) else list(model)
    for each in models:
        if not isinstance(each, Model | Parser):
            raise InputError("model", f"is of type {type(each).__name__}", "give what prpn.load returns")
    parsers = [each.parser if isinstance(each, Model) else each for each in models]
    names = ["model"] if len(parsers) == 1 else [f"model {i}" for i in range(1, len(parsers) + 1)]
    paths = [treebank] if isinstance(treebank, str | Path) else treebank
    by_name, chosen = dict(zip(names, parsers, strict=True)), [protocols] if isinstance(protocols, str) else protocols
    through = builder or common_builder(by_name)
    loaded = load_treebank(paths, Cleaning(maximum=maximum_words))
    return evaluate_parsers(loaded, by_name, protocols_named(chosen), through)
