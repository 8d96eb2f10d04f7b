"""Unigram language model: each token by its share of the training text, whatever stands before it.

    p(w) = (count(w) + 1) / (tokens + vocabulary)

One is added to every count so that a word of the vocabulary that the training part lacks has a probability too.
"""

from __future__ import annotations

import numpy as np

from prpn.text.corpus import Corpus
from prpn.training.evaluate import LanguageScore


def unigram_score(training: Corpus, held_out: Corpus, vocabulary_size: int) -> LanguageScore:
    """How well shares of the training text predict the held-out text."""
    counts = np.bincount(training.ids, minlength=vocabulary_size) + 1.0
    nats = -np.log(counts / counts.sum())
    total = float(nats[held_out.ids].sum())
    return LanguageScore(total, len(held_out.ids), held_out.unknown, held_out.characters)
