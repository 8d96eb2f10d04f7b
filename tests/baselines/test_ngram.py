"""Kneser–Ney against its slow twin, a count by hand, what any language model keeps to, and the known values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prpn.baselines.ngram import NGram, discounts, perplexity
from prpn.baselines.unigram_cache import tune_cache
from prpn.config import TextConfig
from prpn.errors import ConfigError, InputError
from prpn.text.corpus import count_tokens, encode
from prpn.text.tokenizer import Tokenizer
from prpn.text.vocabulary import Vocabulary
from tests.reference.ngram import ReferenceNGram
from tests.text.shared_data import shared

END = 0


@dataclass(frozen=True)
class Case:
    training: list[int]
    held_out: list[int]
    vocabulary_size: int
    order: int
    boundary: int | None

    @property
    def model(self) -> NGram:
        return NGram.train(np.array(self.training, np.int32), self.vocabulary_size, self.order, self.boundary)

    @property
    def twin(self) -> ReferenceNGram:
        return ReferenceNGram(self.training, self.vocabulary_size, self.order, self.boundary)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    size = draw(st.integers(1, 6))
    seen = st.integers(0, draw(st.integers(0, size - 1)))  # the others come up in the held-out text only
    training = draw(st.lists(seen, max_size=draw(st.sampled_from([8, 80]))))
    held_out = draw(st.lists(st.integers(0, size - 1), max_size=12))
    return Case(training, held_out, size, draw(st.integers(1, 5)), draw(st.sampled_from([None, END])))


def log_probabilities(model: NGram, tokens: Sequence[int]) -> np.ndarray:
    return model.log_probabilities(np.array(tokens, np.int32))


def zipfian(seed: int, count: int, size: int) -> list[int]:
    random = np.random.default_rng(seed)
    return (random.zipf(1.3, count) % size).tolist()


ONE_WORD_SENTENCES = [1, END, 2, END, 1, END, 1, END]

# Against the equations


@given(cases())
@example(Case([], [], 1, 1, None))
@example(Case([], [1, END, 1], 3, 3, END))
@example(Case([2], [2, 2, 1], 3, 5, None))
@example(Case(ONE_WORD_SENTENCES, [2, END, 3, END, END, 1], 4, 4, END))
@example(Case(ONE_WORD_SENTENCES, [2, END, 3, END, END, 1], 4, 4, None))
@example(Case([1] * 30, [1] * 9, 2, 4, END))
def test_as_defined(case: Case) -> None:
    expected = case.twin.probabilities(case.held_out)
    assert np.exp(log_probabilities(case.model, case.held_out)) == pytest.approx(expected, rel=1e-12)
    assert np.exp(log_probabilities(case.model, case.training)) == pytest.approx(case.twin.probabilities(case.training))


@pytest.mark.parametrize("boundary", [None, END])
def test_as_defined_where_every_discount_is_estimated(boundary: int | None) -> None:
    case = Case(zipfian(1, 1500, 40), zipfian(2, 150, 40), 40, 3, boundary)
    twin = case.twin
    fallback = {1: 0.5, 2: 1.0, 3: 1.5}
    assert [twin.discounts[k] == fallback for k in (1, 2, 3)] == [True, False, False]
    assert np.exp(log_probabilities(case.model, case.held_out)) == pytest.approx(twin.probabilities(case.held_out))


def test_by_hand() -> None:
    model = NGram.train(np.array([0, 1, 0, 1]), vocabulary_size=3, order=2)
    # Order 1: 0 follows 1, and once nothing: 2; 1 follows 0: 1. Discounts 1 and 1/2 of 3, shared among three tokens.
    first = [1 / 3 + 1 / 6, 1 / 6 + 1 / 6, 1 / 6]
    # Order 2: 0 1 twice, less 1; 1 0 once, less 1/2; nothing followed 2.
    expected = [first[0], 1 / 2 + 1 / 2 * first[1], 1 / 2 + 1 / 2 * first[0], 1 / 2 * first[2], first[1]]
    assert np.exp(log_probabilities(model, [0, 1, 0, 2, 1])) == pytest.approx(expected)
    assert model.perplexity(np.array([0, 1])) == pytest.approx((expected[0] * expected[1]) ** -0.5)


def test_discounts() -> None:
    counts = [1] * 6 + [2] * 3 + [3] * 2 + [4] + [9] * 5
    assert discounts(np.array(counts)) == pytest.approx([0, 1 / 2, 1, 2])
    fallback = [0, 0.5, 1.0, 1.5]
    for counts in ([], [1] * 6, [1, 2, 3, 5], [7, 8, 9], [1, 2, 3, 3, 3, 3, 4], [0, 0]):
        assert discounts(np.array(counts, np.int64)).tolist() == fallback, counts


# What every language model keeps to


@given(cases())
@example(Case(zipfian(3, 300, 6), zipfian(4, 12, 6), 6, 5, END))
def test_every_history_has_a_distribution(case: Case) -> None:
    model = case.model
    for t in range(len(case.held_out) + 1):
        after = [log_probabilities(model, [*case.held_out[:t], token])[t] for token in range(case.vocabulary_size)]
        assert np.exp(after).sum() == pytest.approx(1, abs=1e-12)


@given(cases(), st.data())
def test_a_token_says_nothing_about_those_before_it(case: Case, data: st.DataObject) -> None:
    t = data.draw(st.integers(0, len(case.held_out)))
    other = data.draw(st.lists(st.integers(0, case.vocabulary_size - 1), max_size=4))
    whole = log_probabilities(case.model, case.held_out)
    changed = log_probabilities(case.model, [*case.held_out[:t], *other])
    assert whole.shape == (len(case.held_out),)
    assert np.array_equal(whole[:t], changed[:t])


@given(cases().filter(lambda case: case.boundary is None))
def test_only_so_many_tokens_are_a_history(case: Case) -> None:
    model, whole = case.model, log_probabilities(case.model, case.held_out)
    for t in range(case.order - 1, len(case.held_out)):
        window = case.held_out[t - case.order + 1 : t + 1]
        assert log_probabilities(model, window)[-1] == whole[t]


@given(cases())
def test_sentences_may_be_read_one_by_one(case: Case) -> None:
    model = NGram.train(np.array(case.training, np.int32), case.vocabulary_size, case.order, boundary=END)
    cuts = np.flatnonzero(np.array(case.held_out) == END) + 1
    apart = [model.log_probabilities(part) for part in np.split(np.array(case.held_out, np.int32), cuts)]
    assert np.array_equal(np.concatenate(apart), log_probabilities(model, case.held_out))


@given(cases())
def test_the_order_of_sentences_does_not_matter(case: Case) -> None:
    closed = [*case.training, END]
    cuts = (np.flatnonzero(np.array(closed) == END) + 1)[:-1]
    shuffled = np.concatenate(np.split(np.array(closed), cuts)[::-1])
    first = NGram.train(np.array(closed), case.vocabulary_size, case.order, END)
    second = NGram.train(shuffled, case.vocabulary_size, case.order, END)
    assert np.array_equal(log_probabilities(first, case.held_out), log_probabilities(second, case.held_out))


def test_a_large_vocabulary_and_a_high_order_fit() -> None:
    tokens = np.random.default_rng(5).integers(0, 1_000_000, 300)
    model = NGram.train(np.tile(tokens, 2), 1_000_000, order=20)
    assert model.perplexity(tokens[100:]) < 2 < model.perplexity(tokens[::-1])


def test_the_text_is_left_as_it_is() -> None:
    tokens = np.array([1, 2, END, 1], np.int32)
    tokens.flags.writeable = False
    model = NGram.train(tokens, 3, 3, END)
    assert model.log_probabilities(tokens).dtype == np.float64


# Wrong use


def test_what_cannot_be() -> None:
    tokens = np.array([0, 1, 2])
    model = NGram.train(tokens, 3, 2)
    for wrong in ([3], [-1]):
        with pytest.raises(InputError, match="none of the 3"):
            model.log_probabilities(np.array(wrong))
    with pytest.raises(InputError, match="none of the 2"):
        NGram.train(tokens, 2, 2)
    with pytest.raises(ConfigError, match="boundary 3"):
        NGram.train(tokens, 3, 2, boundary=3)
    for size, order in ((3, 0), (0, 2)):
        with pytest.raises(ConfigError, match="at least 1"):
            NGram.train(tokens, size, order)
    with pytest.raises(InputError, match="no perplexity"):
        model.perplexity(tokens[:0])


# Known values


def penn_treebank(folder: Path) -> tuple[Vocabulary, list[np.ndarray]]:
    tokenizer = Tokenizer(TextConfig(tokenizer="none"))
    files = [shared(f"ptb/ptb.{part}.txt") for part in ("train", "valid", "test")]
    vocabulary = Vocabulary.build(count_tokens(files[:1], tokenizer).counts, 1, 0, with_start=False)
    return vocabulary, [encode([file], tokenizer, vocabulary, folder).ids for file in files]


def test_words_of_the_penn_treebank(tmp_path: Path) -> None:
    """Mikolov et al. 2011: 141.2 on the test set with five words, 125.7 with a cache besides."""
    vocabulary, (training, validation, test) = penn_treebank(tmp_path)
    model = NGram.train(training, len(vocabulary), 5, vocabulary.end)
    judged, last = model.log_probabilities(validation), model.log_probabilities(test)
    assert perplexity(judged) == pytest.approx(148, abs=1.5)
    assert perplexity(last) == pytest.approx(141.2, abs=1.5)
    cache = tune_cache(judged, validation)
    assert perplexity(cache.mixed(last, test)) == pytest.approx(125.7, abs=1.5)
    running = NGram.train(training, len(vocabulary), 5)
    assert running.perplexity(test) == pytest.approx(141.2, abs=1.5), "what the sentence before says is hardly worth it"
