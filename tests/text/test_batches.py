from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prpn.text.batches import Batch, SentenceBatches, StreamBatches

START, END = 1000, 1001


def masked(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    mask = np.ones(batch.targets.shape, bool) if batch.mask is None else batch.mask
    return batch.inputs[mask], batch.targets[mask]


@given(n=st.integers(1, 60), columns=st.integers(1, 12), bptt=st.integers(1, 9), offset=st.integers(0, 200))
def test_every_token_counts_exactly_once(n: int, columns: int, bptt: int, offset: int) -> None:
    batches = StreamBatches(np.arange(n, dtype=np.int32), columns, bptt, start_token=START, offset=offset, once=True)
    inputs, targets = (np.concatenate(parts) for parts in zip(*map(masked, batches), strict=True))
    assert sorted(targets) == list(range(n))
    assert np.array_equal(inputs, np.where(targets == 0, START, targets - 1))
    for batch in batches:
        assert batch.inputs.dtype == batch.targets.dtype == np.int64
        assert batch.inputs.shape == batch.targets.shape
        assert len(batch.inputs) <= bptt
        assert batch.mask is None or not batch.mask.all()


@given(n=st.integers(1, 60), columns=st.integers(1, 12), bptt=st.integers(1, 9), offset=st.integers(0, 200))
def test_columns_against_the_definition(n: int, columns: int, bptt: int, offset: int) -> None:
    batches = StreamBatches(np.arange(n), columns, bptt, start_token=START, offset=offset)
    columns = min(columns, n)
    length = -(-n // columns)
    whole = np.concatenate([batch.targets for batch in batches])
    for b in range(columns):
        assert [(offset + b * n // columns + row) % n for row in range(length)] == whole[:, b].tolist()
    assert whole.shape == (length, columns)
    assert len(batches) == -(-length // bptt)
    assert [batch.fresh for batch in batches] == [True] + [False] * (len(batches) - 1)
    assert all(batch.mask is None for batch in batches)


def test_a_run_can_go_on_at_any_batch() -> None:
    batches = StreamBatches(np.arange(100), 4, 10, start_token=START)
    assert np.array_equal(batches[2].targets, list(batches)[2].targets)
    assert np.array_equal(batches[-1].targets, batches[2].targets)
    assert [len(batch.targets) for batch in batches[1:]] == [10, 5]
    with pytest.raises(IndexError):
        batches[3]
    assert len(StreamBatches(np.arange(0), 4, 10, start_token=START)) == 0


@given(
    n=st.integers(1, 300), columns=st.integers(1, 6), bptt=st.integers(1, 12), jitter=st.floats(0, 0.99),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_moved_cuts_leave_the_stream_and_the_number_of_batches(
    n: int, columns: int, bptt: int, jitter: float, seed: int
) -> None:
    straight = StreamBatches(np.arange(n), columns, bptt, start_token=START)
    random = np.random.default_rng(seed)
    moved = StreamBatches(np.arange(n), columns, bptt, start_token=START, jitter=jitter, random=random)
    assert len(moved) == len(straight)
    for name in ("inputs", "targets"):
        one, other = ([getattr(batch, name) for batch in batches] for batches in (straight, moved))
        assert np.array_equal(np.concatenate(one), np.concatenate(other))
    lengths = [len(batch.targets) for batch in moved]
    assert all(1 <= length <= bptt * (1 + jitter) for length in lengths[:-1])
    assert all(length >= bptt * (1 - jitter) for length in lengths[:-2])


def test_cuts_are_moved_anew_each_time() -> None:
    random = np.random.default_rng(1)
    first, second = (
        [len(b.targets) for b in StreamBatches(np.arange(999), 3, 20, start_token=START, jitter=0.5, random=random)]
        for _ in range(2)
    )
    assert first != second
    assert len(set(first)) > 5


SENTENCES = st.lists(st.lists(st.integers(0, 99), max_size=6), min_size=1, max_size=40)


@given(sentences=SENTENCES, open_end=st.booleans(), columns=st.integers(1, 9), shuffle=st.booleans())
def test_no_sentence_is_dropped(sentences: list[list[int]], open_end: bool, columns: int, shuffle: bool) -> None:
    closed = [[*sentence, END] for sentence in sentences]
    if open_end:
        closed.append([5, 6])
    ids = np.array(list(chain.from_iterable(closed)), dtype=np.int32)
    batches = SentenceBatches(ids, columns, start_token=START, end_token=END, seed=3, epoch=1, shuffle=shuffle)
    found = []
    for batch in batches:
        mask = np.ones(batch.targets.shape, bool) if batch.mask is None else batch.mask
        assert batch.fresh
        assert batch.mask is None or not batch.mask.all()
        assert (batch.inputs[~mask] == END).all()
        for b in range(mask.shape[1]):
            targets = batch.targets[mask[:, b], b].tolist()
            assert batch.inputs[mask[:, b], b].tolist() == [START, *targets[:-1]]
            assert mask[: len(targets), b].all()
            found.append(targets)
    assert sorted(found) == sorted(closed)
    assert len(batches) == -(-len(closed) // columns)
    assert all(batch.targets.shape[1] <= columns for batch in batches)


def corpus_of(lengths: np.ndarray) -> np.ndarray:
    ids = np.arange(lengths.sum()) % 900
    ids[lengths.cumsum() - 1] = END
    return ids


def test_order_depends_on_seed_and_epoch_and_padding_is_small() -> None:
    ids = corpus_of(np.random.default_rng(0).integers(1, 60, 5000))

    def order(seed: int, epoch: int) -> list[int]:
        batches = SentenceBatches(ids, 20, start_token=START, end_token=END, seed=seed, epoch=epoch)
        return [int(token) for batch in batches for token in batch.targets[0]]

    assert order(1, 0) == order(1, 0)
    assert order(1, 0) != order(1, 1) != order(2, 1)
    batches = list(SentenceBatches(ids, 20, start_token=START, end_token=END, seed=1))
    padded = sum(batch.targets.size for batch in batches)
    assert padded < 1.05 * len(ids)
    lengths = [len(batch.targets) for batch in batches]
    assert any(a > b for a, b in pairwise(lengths))


def test_without_shuffling_sentences_of_one_length_keep_their_order() -> None:
    ids = corpus_of(np.full(10, 3))
    batches = SentenceBatches(ids, 4, start_token=START, end_token=END, shuffle=False)
    assert [batch.targets.shape for batch in batches] == [(3, 4), (3, 4), (3, 2)]
    assert all(batch.mask is None for batch in batches)
    assert np.array_equal(np.concatenate([batch.targets.T.ravel() for batch in batches]), ids)


def test_an_empty_corpus_has_no_batches() -> None:
    assert len(SentenceBatches(np.arange(0), 4, start_token=START, end_token=END)) == 0
