"""Small models with weights far from their first values, and what they should say."""

from __future__ import annotations

import torch

from prpn.api.model import Model
from prpn.config import Recipe
from prpn.model import PRPN
from prpn.text.vocabulary import Vocabulary
from tests.training.tiny import WORDS, recipe

KINDS = {
    "stream": (),
    "sentences": ("training.batching=sentences",),
    "characters": ("text.tokenizer=characters",),
    "no line ends": ("text.line_ends=false",),
}
SENTENCE = "the old man sat on the bench ."


def model_of(*assignments: str, precise: bool = True) -> Model:
    model = untrained(recipe(*assignments))
    if precise:
        model.network.double()
    return model


def untrained(chosen: Recipe, tokens: list[str] | None = None) -> Model:
    """A model of these tokens; without any, of the words, or the characters, that the small texts have."""
    if tokens is None:
        tokens = sorted(set("".join(WORDS)) | {"_"}) if chosen.text.tokenizer == "characters" else WORDS
    start = ["<s>"] if chosen.training.batching == "sentences" else []
    vocabulary = Vocabulary(("<unk>", "</s>", *start, *tokens))
    torch.manual_seed(0)
    network = PRPN(chosen.model, len(vocabulary))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.7)
    return Model(chosen, vocabulary, network)


def log_probabilities(model: Model, ids: list[int]) -> torch.Tensor:
    """ln p of every token after each prefix of ids, read in one piece from the beginning."""
    with torch.no_grad():
        output = model.network(torch.tensor([model.vocabulary.start, *ids])[:, None])
        return model.network.logits(output)[:, 0].log_softmax(-1)
