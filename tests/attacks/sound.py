"""Sound model folders of every kind, which attacks begin with; made once, in seconds."""

from __future__ import annotations

import random
from pathlib import Path

from tests.training.tiny import WORDS, toml

KINDS = {
    "stream": ("text.tokenizer=unicode",),
    "sentences": ("training.batching=sentences", "training.average=0.9"),
    "paper": ("model.flavour=paper", "model.tied=false", "model.residual_blocks=1", "training.beta1=0.9",
              "model.dropout_locked=true", "text.unknown_classes=3", "text.minimum_count=2"),
    "plain": ("model.parsing=false", "model.reading_attention=false", "model.predict_attention=false"),
    "characters": ("text.tokenizer=characters",),
}  # fmt: skip
TREES = """( (S (NP (DT the) (JJ old) (NN man)) (VP (VBD sat) (PP (IN on) (NP (DT the) (NN bench)))) (. .)) )
( (S (NP (DT a) (NN dog)) (VP (VBD ran) (PP (IN in) (NP (DT the) (NN park))))) )
( (NP (NP (DT the) (NN man)) (PP (IN on) (NP (DT the) (JJ old) (NN bench)))) )
"""


def make(folder: Path) -> None:
    """The folders, a text, a treebank and recipes."""
    from prpn.api.model import load
    from prpn.config import load_recipe
    from prpn.distillation import distill
    from prpn.distillation.run import StudentConfig
    from prpn.language.cached_score import save_cache, tune_on
    from prpn.parsing.parser import Parser
    from prpn.training.run import train

    draw = random.Random(0)
    lines = (" ".join(draw.choices([*WORDS, ","], k=draw.randint(3, 12))) for _ in range(60))
    (folder / "text.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "gold.trees").write_text(TREES)
    text = str(folder / "text.txt")
    for kind, settings in KINDS.items():
        recipe = toml(folder / f"{kind}.toml", *settings, "training.epochs=1")
        train(load_recipe(str(recipe)), folder / kind, texts=[text], quiet=True)
        toml(folder / f"{kind}.toml", *settings, "training.epochs=2")
        if "training.batching=sentences" not in settings:
            model = load(folder / kind)
            corpus = model.encode_file(text)
            tuned = tune_on(model.network, corpus, model.vocabulary, model.recipe.training)
            save_cache(folder / kind, tuned, corpus)
    how = StudentConfig(channels=8, lookback=1, lookahead=2, epochs=1)
    distill([Parser.load(folder / "stream")], [text], folder / "distilled", how, language_model=folder / "stream",
            quiet=True)  # fmt: skip
