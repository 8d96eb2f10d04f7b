"""Parse in eight Python threads at once that share their tables, and compare with one alone.

    make sanitize-threads

runs it on a core whose every access to memory ThreadSanitizer watches: not to see that the trees are right, but that no
thread reads what another writes.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np

from prpn.kernels import native, parsing

THREADS, BLOCKS, WORDS, SIZE, WINDOWS, CHANNELS = 8, 6, 40, 24, 4, 32


def tables() -> Any:
    """What all threads read: the rows of some words, and the arrays they are made from."""
    draw = np.random.default_rng(1)

    def normal(*shape: int) -> np.ndarray:
        return draw.normal(size=shape).astype(np.float32)

    embedding, kernel = normal(WORDS, SIZE), normal(SIZE, WINDOWS * CHANNELS)
    table = np.zeros((WORDS, WINDOWS * CHANNELS), dtype=np.float32)
    parsing.make_rows(embedding, kernel, np.arange(WORDS, dtype=np.int32), table)
    rows = SimpleNamespace(
        table=table, channels=CHANNELS, windows=WINDOWS, SILENCE=0, START=1, embedding=embedding, kernel=kernel
    )
    return SimpleNamespace(rows=rows, bias=normal(CHANNELS), head=normal(CHANNELS), head_bias=0.5, lookahead=1)


def block(number: int) -> bytes:
    """Some lines, as long as several parts that threads take."""
    draw = np.random.default_rng(number)
    words = draw.integers(2, WORDS, 12_000)
    ends = draw.random(len(words)) < 0.1
    return b"".join(b"w%d%s" % (word, b"\n" if end else b" ") for word, end in zip(words, ends, strict=True)) + b"\n"


def parse(shared: Any, seed: int) -> list[bytes]:
    """The trees of some blocks; the first half of the words is known beforehand, the others are asked for."""
    forms, builders = parsing.FORMATS, parsing.BUILDERS
    text = parsing.TextWithTrees(
        forms[seed % len(forms)], lambda chunk, _: [chunk], lambda words: [int(word[1:]) for word in words],
        {"w": 2}, ["x"], lowercase=False, unknown=-1,
    )  # fmt: skip
    found = []
    for number in range(BLOCKS):
        ids, ends = text.read(block(seed * BLOCKS + number))
        own = np.empty((len(ids[:50]), WINDOWS * CHANNELS), dtype=np.float32)
        parsing.make_rows(shared.rows.embedding, shared.rows.kernel, ids[:50].copy(), own)
        scores = np.empty(len(ids), dtype=np.float32)
        parsing.scores(shared, ids, 0, ends, scores, 0)
        found += [own.tobytes(), *map(bytes, text.write(scores, scores.astype(float), builders[seed % len(builders)]))]
    return found


def main() -> None:
    """Fail if threads disagree with one."""
    shared = tables()
    expected = [parse(shared, seed) for seed in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda seed: parse(shared, seed), range(THREADS)))
    assert found == expected
    print(f"{THREADS} threads parsed the same trees as one ({native.instruction_set()})")


if __name__ == "__main__":
    main()
