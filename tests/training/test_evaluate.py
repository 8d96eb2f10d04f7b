"""Perplexity and bits per character, against a sum written out by hand over the text in one piece."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prpn.config import Recipe
from prpn.model import PRPN
from prpn.text.cache import default_cache
from prpn.text.corpus import Corpus, encode
from prpn.text.tokenizer import Tokenizer
from prpn.text.vocabulary import Vocabulary
from prpn.training import evaluate
from prpn.training.data import evaluation_batches
from prpn.training.evaluate import LanguageScore, score, token_losses

from .tiny import recipe

STREAM = Vocabulary(("<unk>", "</s>", "a", "bb", "ccc", "d"))
SENTENCES = Vocabulary(("<unk>", "</s>", "<s>", "a", "bb", "ccc", "d"))
STREAM_RECIPE = recipe("model.layers=2")
SENTENCE_RECIPE = recipe("model.layers=2", "training.batching=sentences")


def vocabulary_of(chosen: Recipe) -> Vocabulary:
    return SENTENCES if chosen.training.batching == "sentences" else STREAM


def network_of(chosen: Recipe, seed: int = 0) -> PRPN:
    """A network in float64 with weights and statistics far from their first values."""
    torch.manual_seed(seed)
    network = PRPN(chosen.model, len(vocabulary_of(chosen))).double()
    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(torch.rand_like(tensor) + 0.5 if "var" in name else torch.randn_like(tensor) * 0.7)
    return network


def corpus_of(ids: list[int]) -> Corpus:
    return Corpus(np.array(ids, dtype=np.int32), None, 1, ids.count(0), max(1, len(ids)), "")


def in_one_piece(network: PRPN, ids: list[int], start: int) -> list[float]:
    """The nats of every token when the whole text is read at once."""
    network.eval()
    with torch.no_grad():
        output = network(torch.tensor([start, *ids[:-1]])[:, None])
        probabilities = network.logits(output)[:, 0].log_softmax(-1)
    return [-probabilities[place, token].item() for place, token in enumerate(ids)]


streams = st.lists(st.integers(0, len(STREAM) - 1), min_size=1, max_size=30)
texts = st.lists(st.lists(st.sampled_from([0, 3, 4, 5, 6]), min_size=1, max_size=6), min_size=1, max_size=9)


@settings(max_examples=20)
@given(streams, st.integers(1, 40))
def test_one_stream_is_the_sum_over_the_text_in_one_piece(ids: list[int], chunk: int) -> None:
    network = network_of(STREAM_RECIPE)
    expected = in_one_piece(network, ids, STREAM.end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate, "CHUNK", chunk)
        found = score(network, corpus_of(ids), STREAM, STREAM_RECIPE.training)
    assert found.nats == pytest.approx(sum(expected), rel=1e-11)
    assert found.tokens == len(ids)
    batches = evaluation_batches(STREAM_RECIPE.training, STREAM, np.array(ids), 1, chunk)
    losses = torch.cat(list(token_losses(network, batches, torch.device("cpu"))))
    assert losses.tolist() == pytest.approx(expected, rel=1e-10)


@settings(max_examples=15)
@given(texts)
def test_sentences_each_by_itself(sentences: list[list[int]]) -> None:
    network = network_of(SENTENCE_RECIPE)
    closed = [[*sentence, SENTENCES.end] for sentence in sentences]
    expected = sum(sum(in_one_piece(network, sentence, SENTENCES.start)) for sentence in closed)
    corpus = corpus_of([token for sentence in closed for token in sentence])
    for columns in (1, 3, 16):
        found = score(network, corpus, SENTENCES, SENTENCE_RECIPE.training, columns=columns)
        assert found.nats == pytest.approx(expected, rel=1e-11)
        assert found.tokens == len(corpus.ids)


@settings(max_examples=15)
@given(streams, st.sampled_from([1, 2, 7, 16]))
def test_in_columns_every_token_counts_once(ids: list[int], columns: int) -> None:
    network = network_of(STREAM_RECIPE)
    found = score(network, corpus_of(ids), STREAM, STREAM_RECIPE.training, columns=columns)
    assert found.tokens == len(ids)
    ends = [len(ids) * k // min(columns, len(ids)) for k in range(min(columns, len(ids)) + 1)]
    expected = 0.0  # each column starts without context, after the token before it
    for begin, end in pairwise(ends):
        expected += sum(in_one_piece(network, ids[begin:end], ids[begin - 1] if begin else STREAM.end))
    assert found.nats == pytest.approx(expected, rel=1e-11)


def test_uniform_over_the_vocabulary() -> None:
    network = network_of(STREAM_RECIPE)
    with torch.no_grad():
        network.decoder.weight.zero_()
        network.decoder.bias.zero_()
    found = score(network, corpus_of([2, 3, 4, 1, 5]), STREAM, STREAM_RECIPE.training)
    assert found.perplexity == pytest.approx(len(STREAM))


def test_scoring_leaves_the_network_as_it_was() -> None:
    network = network_of(STREAM_RECIPE)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    for mode in (True, False):
        network.train(mode)
        score(network, corpus_of([2, 3, 4]), STREAM, STREAM_RECIPE.training)
        assert network.training == mode
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


def test_dropout_is_off_and_scoring_draws_nothing() -> None:
    network = network_of(STREAM_RECIPE).train()
    state = torch.get_rng_state()
    first = score(network, corpus_of([2, 3, 4, 5, 1] * 4), STREAM, STREAM_RECIPE.training)
    assert first == score(network, corpus_of([2, 3, 4, 5, 1] * 4), STREAM, STREAM_RECIPE.training)
    assert torch.equal(torch.get_rng_state(), state)


def test_progress_is_told_of_every_token() -> None:
    told: list[int] = []
    score(network_of(STREAM_RECIPE), corpus_of([2] * 300), STREAM, STREAM_RECIPE.training, progress=told.append)
    assert sum(told) == 300
    assert len(told) > 1


@pytest.mark.parametrize("chosen", [STREAM_RECIPE, SENTENCE_RECIPE], ids=["stream", "sentences"])
def test_definitions(chosen: Recipe, tmp_path: Path) -> None:
    """Bits per character count the tokenised text, spaces and line ends included; an unknown word at its own length."""
    text = "a bb unheard\nccc d\nnever a\n"
    (tmp_path / "text.txt").write_text(text)
    vocabulary = vocabulary_of(chosen)
    corpus = encode([tmp_path / "text.txt"], Tokenizer(chosen.text), vocabulary, default_cache())
    found = score(network_of(chosen), corpus, vocabulary, chosen.training)
    assert found.tokens == 7 + 3
    assert found.unknown == 2
    assert found.characters == len(text)
    assert found.loss == found.nats / 10
    assert found.perplexity == pytest.approx(math.exp(found.nats / 10))
    assert found.bits_per_character == pytest.approx(found.nats / math.log(2) / len(text))


def test_a_hopeless_perplexity_is_a_number() -> None:
    assert math.isfinite(LanguageScore(nats=1e6, tokens=1, unknown=0, characters=1).perplexity)
