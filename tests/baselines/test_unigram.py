"""The unigram model against a count by hand."""

import math

import numpy as np
import pytest

from prpn.baselines.unigram import unigram_score
from prpn.text.corpus import Corpus


def corpus(*ids: int) -> Corpus:
    return Corpus(np.array(ids, dtype=np.int32), None, 1, 0, len(ids), "")


def test_by_hand() -> None:
    score = unigram_score(corpus(0, 0, 1), corpus(0, 1, 2), vocabulary_size=4)
    shares = [3 / 7, 2 / 7, 1 / 7]  # counts 2, 1, 0, 0, one added to each
    assert score.nats == pytest.approx(-sum(math.log(share) for share in shares))
    assert score.tokens == 3
    assert score.perplexity == pytest.approx(math.prod(shares) ** (-1 / 3))
