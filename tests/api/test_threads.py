"""One model for many threads: the same trees and the same scores as in one; `tests.attacks.threads` has more of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import prpn
from prpn.kernels import native
from prpn.parsing import folded, words
from tests.attacks.threads import WAYS, differences, model_with_little_room, some_lines

THREADS = 8
KERNELS = [
    pytest.param("fp32", marks=pytest.mark.skipif(native.library() is None, reason="no native core was built")),
    "off",
]


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("way", WAYS)
def test_threads_share_a_model(kernels: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRPN_KERNELS", kernels)
    monkeypatch.setattr(folded, "ROW_BYTES", folded.ROW_BYTES)  # which are put back
    monkeypatch.setattr(words, "REMEMBERED_CHUNKS", words.REMEMBERED_CHUNKS)
    assert differences(some_lines(1500), THREADS, way, model_with_little_room()) == 0


def test_threads_share_a_language_model() -> None:
    model, lines = prpn.load(), some_lines(24)
    alone = [model.perplexity(line) for line in lines]
    fresh = prpn.load()  # whose network is made by whoever comes first
    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(fresh.perplexity, lines))
    assert together == pytest.approx(alone, rel=1e-5)
