"""PRPN, the Parsing-Reading-Predict Network: a language model that discovers the syntax of the text it reads.

    text ─ corpus ─ vocabulary ─ batches ─ PRPN [ parsing → reading → predict ]
                                              ├─ next-token loss ─ perplexity / bits per character
                                              └─ distances ─ trees ─ F1 against a treebank, by named protocol

Names are imported when they are first used, so `import prpn` alone loads no heavy library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prpn.api.batch import BatchParser, Spans
    from prpn.api.evaluation import evaluate
    from prpn.api.model import Model, load
    from prpn.api.training import train
    from prpn.config import ModelConfig, Recipe, TextConfig, TrainingConfig, load_recipe, recipe_names
    from prpn.errors import ConfigError, InputError, PrpnError
    from prpn.model import PRPN, Output, State
    from prpn.parsing.parser import Parser
    from prpn.parsing.text import FileCounts
    from prpn.text.vocabulary import Vocabulary
    from prpn.trees import Tree, average, build
    from prpn.trees.evaluation import Evaluation

__version__ = "0.1.0"

_HOMES = {
    "ModelConfig": "config",
    "Recipe": "config",
    "TextConfig": "config",
    "TrainingConfig": "config",
    "load_recipe": "config",
    "recipe_names": "config",
    "ConfigError": "errors",
    "InputError": "errors",
    "PrpnError": "errors",
    "PRPN": "model",
    "Output": "model",
    "State": "model",
    "BatchParser": "api.batch",
    "Spans": "api.batch",
    "evaluate": "api.evaluation",
    "FileCounts": "parsing.text",
    "Model": "api.model",
    "load": "api.model",
    "train": "api.training",
    "Parser": "parsing.parser",
    "Vocabulary": "text.vocabulary",
    "Tree": "trees",
    "average": "trees",
    "build": "trees",
    "Evaluation": "trees.evaluation",
}

__all__ = [
    "PRPN", "BatchParser", "ConfigError", "Evaluation", "FileCounts", "InputError", "Model", "ModelConfig", "Output",
    "Parser", "PrpnError", "Recipe", "Spans", "State", "TextConfig", "TrainingConfig", "Tree", "Vocabulary", "average",
    "build", "evaluate", "load", "load_recipe", "recipe_names", "train",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module prpn has no attribute {name}")
    return getattr(import_module(f"prpn.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
