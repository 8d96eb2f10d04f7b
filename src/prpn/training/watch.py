"""A treebank beside the run: how the trees come along. It is only watched: no weights are chosen by it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prpn.config import Recipe
from prpn.errors import ConfigError
from prpn.model import PRPN
from prpn.parsing.parser import Parser, standard_deviation
from prpn.text.vocabulary import Vocabulary
from prpn.training.checkpoint import arrays_of
from prpn.trees.cleaning import load_treebank
from prpn.trees.protocols import protocols_named
from prpn.trees.scores import GoldBrackets, figures


class TreebankWatch:
    """F1 of a network's trees by the protocols of the authors and of most later work, all lengths."""

    def __init__(self, paths: Sequence[str | Path], recipe: Recipe) -> None:
        if not recipe.model.parsing:
            raise ConfigError("--treebank: this recipe has no parsing network, so no trees to watch")
        if recipe.text.tokenizer == "characters":
            raise ConfigError("--treebank: a model of characters knows no word of a tree; leave it out")
        self.recipe = recipe
        golds = [sentence.tree for sentence in load_treebank(paths).counted()]
        self.protocols = protocols_named(["released", "kim"])
        self.sentences = [gold.words for gold in golds]
        self.brackets = GoldBrackets(golds, self.protocols)

    def __call__(self, network: PRPN, vocabulary: Vocabulary) -> dict[str, float]:
        """F1 in percent, by protocol."""
        parser = Parser(self.recipe, vocabulary, arrays_of(network))
        parser.scale = standard_deviation(parser.scores(self.sentences))  # the network's own is measured at the end
        trees = [parsed.tree for parsed in parser.parse_many(self.sentences)]
        counts = self.brackets.counts(trees, self.protocols)
        return {
            protocol.name: figures(counts[protocol.name][None], protocol, protocol.included(self.brackets.lengths)).f1
            for protocol in self.protocols
        }
