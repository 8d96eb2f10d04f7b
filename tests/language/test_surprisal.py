"""The surprisal of each token, against the text read in one piece."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from prpn.errors import ConfigError
from prpn.language.cache_pointer import CachePointer
from prpn.language.surprisal import CHUNK
from tests.language.models import KINDS, SENTENCE, log_probabilities, model_of
from tests.training.tiny import sentences

TEXT = "the old man\n\nsat zyx on <unk> bench\n.\n"


def in_one_piece(tokens: list[str], *assignments: str) -> list[float]:
    model = model_of(*assignments)
    ids = model.vocabulary.encode(tokens)
    logs = log_probabilities(model, ids[:-1])
    return [-logs[place, token].item() / math.log(2) for place, token in enumerate(ids)]


def test_as_defined() -> None:
    scored = model_of().surprisal(TEXT)
    assert [(each.line, each.token) for each in scored] == [
        (1, "the"), (1, "old"), (1, "man"), (1, "</s>"),
        (3, "sat"), (3, "zyx"), (3, "on"), (3, "<unk>"), (3, "bench"), (3, "</s>"),
        (4, "."), (4, "</s>"),
    ]  # fmt: skip
    assert [each.bits for each in scored] == pytest.approx(in_one_piece([each.token for each in scored]))
    assert [each.token for each in scored if each.scored_as == "<unk>"] == ["zyx", "<unk>"]
    assert all(each.scored_as in (each.token, "<unk>") for each in scored)
    assert all(each.bits == each.bits_without_cache for each in scored)


def test_a_sentence_model_reads_sentences() -> None:
    scored = model_of("training.batching=sentences").surprisal("the old man\nsat .\n")
    first, second = ([each for each in scored if each.line == line] for line in (1, 2))
    for sentence in (first, second):
        expected = in_one_piece([each.token for each in sentence], "training.batching=sentences")
        assert [each.bits for each in sentence] == pytest.approx(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_they_add_up_to_the_perplexity_of_the_file(kind: str, tmp_path: Path) -> None:
    model, text = model_of(*KINDS[kind]), sentences(60)
    assert len(text.split()) > CHUNK
    (tmp_path / "text.txt").write_text(text)
    whole = model.score_file(str(tmp_path / "text.txt"))
    scored = list(model.score_tokens(str(tmp_path / "text.txt")))
    assert scored == model.surprisal(text)
    assert len(scored) == whole.tokens
    assert math.fsum(each.bits for each in scored) * math.log(2) == pytest.approx(whole.nats)
    assert model.perplexity(text) == pytest.approx(whole.perplexity)


def test_a_text_without_tokens_has_none() -> None:
    assert model_of().surprisal("") == []


def test_with_a_cache() -> None:
    model, text = model_of(), f"{SENTENCE}\n" * 30
    plain, cached = model.surprisal(text), model.surprisal(text, CachePointer(50, 0.1, 0.5))
    assert [each.bits_without_cache for each in cached] == [each.bits for each in plain]
    assert cached[0].bits == pytest.approx(plain[0].bits)
    assert math.fsum(each.bits for each in cached) < math.fsum(each.bits for each in plain)


def test_no_cache_for_a_sentence_model() -> None:
    with pytest.raises(ConfigError, match="every sentence by itself"):
        model_of("training.batching=sentences").surprisal(SENTENCE, CachePointer(50, 0.1, 0.5))
