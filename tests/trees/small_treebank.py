"""A small treebank, and models of random weights to parse it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from prpn.config import recipe_from
from prpn.parsing.parser import Parser
from prpn.text.vocabulary import Vocabulary
from prpn.trees import Builder, Tree
from prpn.trees.cleaning import Cleaning, Treebank, load_treebank
from prpn.trees.protocols import PROTOCOLS
from tests.reference import scores as reference

ALL = list(PROTOCOLS.values())
BASELINES = ["left", "right", "balanced", "random", "random-distances", "upper"]
FIGURES = {"f1", "precision", "recall", "low", "high"}

TREES = """
( (S (NP-SBJ (DT the) (JJ old) (NN man)) (VP (VBD sat) (PP-LOC (IN on) (NP (DT the) (NN bench)))) (. .)) )
( (S (NP-SBJ-1 (PRP he)) (VP (VBD saw) (NP (NP (DT a) (NN dog)) (PP (IN in) (NP (DT the) (NN park))))) (. .)) )
( (FRAG (NP (DT a) (NN dog)) (. !)) )
( (S (NP-SBJ (-NONE- *)) (VP (VB run)) (. !)) )
( (NP (NP (DT the) (NN man)) (PP=2 (IN on) (NP (DT the) (JJ old) (NN bench)))) )
( (SBARQ (WHNP-1 (WP who)) (SQ (NP-SBJ (-NONE- *T*-1)) (VP (VBD saw) (NP (PRP him)))) (. ?)) )
( (S (S (NP-SBJ (DT the) (NN dog)) (VP (VBD ran))) (, ,) (CC and) (S (NP-SBJ (DT the) (NN man)) (VP (VBD ran) (ADVP
    (RB too)) (PP (IN in) (NP (DT the) (JJ old) (NN park))))) (. .)) )
( (NP (NP (NN man)) (, ,) (NP (NN dog)) (CC and) (NP (NN bench))) )
( (S (VP (VB see) (NP (DT the) (NN park) (NN bench)))) )
( (X (: --)) )
"""
BROKEN = TREES + "( (S (NN man) ran) )\n( (S (NP (NN man)\n"


def treebank(folder: Path, text: str = TREES, maximum: int | None = None, skip_broken: bool = False) -> Treebank:
    path = folder / "own.trees"
    path.write_text(text, encoding="utf-8")
    return load_treebank([path], Cleaning(maximum=maximum), skip_broken=skip_broken)


def parser(
    seed: int = 1,
    flavour: str = "released",
    builder: Builder = "paper",
    scale: float = 1.0,
    constant: float | None = None,
) -> Parser:
    """A model of random weights; distances before their activation grow with `scale`, or are all the same."""
    random = np.random.default_rng(seed)
    words = sorted(set(re.findall(r"[a-z]+(?=\))", TREES)))
    recipe = recipe_from(
        {
            "text": {"tokenizer": "none"},
            "model": {"flavour": flavour, "embedding": 3, "hidden": 8, "lookback": 2, "builder": builder},
        },
        "tiny",
    )
    channels = 4 if flavour == "released" else 8
    shapes = {
        "embedding.weight": (len(words) + 2, 3),
        "parsing.convolution.weight": (8, 3, 3),
        "parsing.convolution.bias": (8,),
        "parsing.norm.weight": (8,),
        "parsing.norm.bias": (8,),
        "parsing.norm.running_mean": (8,),
        "parsing.norm.running_var": (8,),
        "parsing.heads.weight": (2, channels, 1),
        "parsing.heads.bias": (2,),
    }
    weights = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    weights["parsing.norm.running_var"] = np.abs(weights["parsing.norm.running_var"]) + 0.5
    weights["parsing.heads.weight"] *= scale if constant is None else 0
    weights["parsing.heads.bias"] *= 0
    weights["parsing.heads.bias"] += constant or 0
    return Parser(recipe, Vocabulary(("<unk>", "</s>", *words)), weights)


def own_golds() -> list[reference.Tree]:
    return reference.penn(TREES)


def trees_of(model: Parser, sentences: Sequence[Tree], builder: Builder | None = None) -> list[Tree]:
    return [found.tree for found in model.parse_many([tree.words for tree in sentences], builder)]


def golds_of(loaded: Treebank) -> list[Tree]:
    return [sentence.tree for sentence in loaded.counted()]
