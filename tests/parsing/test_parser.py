"""The numpy parser against the network it is folded from, and what parsing promises to a user."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from prpn.api.model import Model
from prpn.config import ModelConfig, Recipe, TextConfig
from prpn.errors import InputError
from prpn.model import PRPN
from prpn.model.parsing import ParsingNetwork
from prpn.parsing import parser as parser_module
from prpn.parsing.parser import Parser
from prpn.text.vocabulary import Vocabulary
from prpn.trees import build
from tests.model.cases import configs, seeds
from tests.refusals import raises_config_error

VOCABULARY = Vocabulary(("<unk>", "</s>", "a", "b", "c", "d", "e"))
WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "zzz"]), max_size=12)


def model_with(config: ModelConfig, seed: int) -> Model:
    recipe = Recipe("test", text=TextConfig(tokenizer="none"), model=config)
    torch.manual_seed(seed)
    network = PRPN(config, len(VOCABULARY))
    for name, tensor in network.state_dict().items():  # statistics that a fresh network does not have
        if name.endswith(("running_mean", "norm.bias", "norm.weight")):
            tensor.copy_(torch.randn_like(tensor))
        elif name.endswith("running_var"):
            tensor.copy_(torch.rand_like(tensor) + 0.1)
    return Model(recipe, VOCABULARY, network)


def expected_scores(model: Model, words: list[str]) -> np.ndarray:
    """By the network itself: L zero vectors, what precedes sentences, then the words."""
    parsing, config = model.network.parsing, model.recipe.model
    assert isinstance(parsing, ParsingNetwork)
    ids = torch.tensor([VOCABULARY.start, *VOCABULARY.encode(words)])
    with torch.no_grad():
        embeddings = model.network.embedding(ids)[:, None]
        before = embeddings.new_zeros(config.lookback, 1, config.embedding)
        return parsing.scores(torch.cat([before, embeddings]))[1:, 0, 0].numpy()


@given(config=configs(parsing=True), sentences=st.lists(WORDS, max_size=5), seed=seeds, block=st.integers(1, 30))
def test_scores_are_those_of_the_network_in_any_company(
    config: ModelConfig, sentences: list[list[str]], seed: int, block: int
) -> None:
    model = model_with(config, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parser_module, "BLOCK", block)
        found = model.parser.scores(sentences)
        parsed = list(model.parser.parse_many(sentences))
    assert len(found) == len(parsed) == len(sentences)
    for words, scores, tree in zip(sentences, found, parsed, strict=True):
        np.testing.assert_allclose(scores, expected_scores(model, words), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(tree.scores, scores, rtol=1e-4, atol=1e-5)
        assert tree.tree == build(words, tree.scores, config.builder)


@given(config=configs(parsing=True), words=WORDS, seed=seeds)
def test_distances_are_those_the_gates_compare(config: ModelConfig, words: list[str], seed: int) -> None:
    model = model_with(config, seed)
    scores = torch.from_numpy(model.scores(words))
    expected = scores.sigmoid() if config.flavour == "released" else scores.relu()
    np.testing.assert_allclose(model.distances(words), expected.numpy(), rtol=1e-12)


def test_saturation() -> None:
    released = model_with(ModelConfig(embedding=2, hidden=2), 0).parser
    assert released.saturated(np.array([-9.0, 0.0, 9.0])).tolist() == [True, False, True]
    paper = model_with(ModelConfig(embedding=2, hidden=2, flavour="paper"), 0).parser
    assert paper.saturated(np.array([-9.0, 0.0, 9.0])).tolist() == [True, True, False]


def test_trees_have_the_words_as_written_and_the_model_reads_them_normalised() -> None:
    recipe = Recipe("test", text=TextConfig(tokenizer="unicode", lowercase=True, digits="N"), model=ModelConfig())
    vocabulary = Vocabulary(("<unk>", "</s>", "a", "b", "N"))
    model = Model(recipe, vocabulary, PRPN(ModelConfig(), len(vocabulary)))
    tree = model.parse("A b, 42")
    assert tree.words == ("A", "b", ",", "42")
    np.testing.assert_array_equal(model.scores("A b, 42"), model.scores(["a", "B", ",", "7"]))
    assert model.parser.words("A b,", tokenized=True) == ["A", "b,"]


def test_a_parser_of_characters_reads_no_words() -> None:
    recipe = Recipe("test", text=TextConfig(tokenizer="characters"), model=ModelConfig())
    parser = Model(recipe, VOCABULARY, PRPN(ModelConfig(), len(VOCABULARY))).parser
    assert parser.words("a b") == ["a", "_", "b"]
    with raises_config_error("leave out --tokenized"):
        parser.words("a b", tokenized=True)


def test_a_model_without_parsing_network_says_so() -> None:
    config = ModelConfig(embedding=2, hidden=2, parsing=False)
    with pytest.raises(InputError, match="test: has no parsing network; use a model with"):
        model_with(config, 0).parse("a b")


def test_unusable_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not a model folder \(no config.json\)"):
        Parser.load(tmp_path)


def test_parsing_imports_no_torch() -> None:
    code = "import sys, prpn.parsing.parser, prpn.cli, prpn.trees.evaluation; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
