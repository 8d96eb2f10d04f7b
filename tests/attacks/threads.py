"""Many threads on one model: not one tree may differ from those of a single thread.

    python -m tests.attacks.threads --sentences 200000 --threads 8          PRPN_KERNELS=off for the twin in numpy

Every thread parses lines of its own with models that all share, small tables of rows and small memories included, so
that tables begin anew and chunks are forgotten while others read them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import prpn
from prpn.parsing import folded, words
from prpn.text.files import read_lines
from prpn.training.data import embedded_corpus

WAYS = ("parse", "pipe", "pipe of brackets", "BatchParser")


def some_lines(count: int) -> list[str]:
    """Lines of the embedded web text, again and again."""
    corpus = [line for _, line in read_lines(embedded_corpus("ewt")) if isinstance(line, str)]
    return [corpus[i % len(corpus)] for i in range(count)]


def differences(lines: Sequence[str], threads: int, way: str, model: prpn.Model) -> int:
    """How many trees differ where threads share a model, in one of several ways."""
    expected = list(prpn.load().pipe(lines, form="brackets"))
    batches = prpn.BatchParser(model.parser, threads=2)
    parts = [range(first, min(first + 50, len(lines))) for first in range(0, len(lines), 50)]

    def by_parse(some: Sequence[str]) -> list[str]:
        return [model.parse(line).brackets() if line.split() else "" for line in some]

    def by_pipe(some: Sequence[str]) -> list[str]:
        return [tree.brackets() if tree.words else "" for tree in model.pipe(some)]

    def by_lines(some: Sequence[str]) -> list[str]:
        return list(model.pipe(some, form="brackets"))

    def by_batch(some: Sequence[str]) -> list[str]:
        return rebuilt(batches.spans(some), batches.lines(some))

    work: Callable[[Sequence[str]], list[str]] = dict(zip(WAYS, (by_parse, by_pipe, by_lines, by_batch), strict=True))[
        way
    ]
    with ThreadPoolExecutor(threads) as pool:
        found = pool.map(lambda part: work([lines[i] for i in part]), parts)
        return sum(
            expected[i] != tree
            for part, trees in zip(parts, found, strict=True)
            for i, tree in zip(part, trees, strict=True)
        )


def rebuilt(spans: prpn.Spans, lines: Sequence[str]) -> list[str]:
    """Trees written from arrays, with the words of the lines that the same parser wrote."""
    found, word, span = [], 0, 0
    for line, word_end, span_end in zip(lines, spans.word_ends.tolist(), spans.span_ends.tolist(), strict=True):
        leaves = line.replace("(", "").replace(")", "").split()
        opening, closing = [0] * len(leaves), [0] * len(leaves)
        for start, stop in zip(spans.starts[span:span_end].tolist(), spans.stops[span:span_end].tolist(), strict=True):
            opening[start] += 1
            closing[stop - 1] += 1
        if word_end - word == 1:
            opening = closing = [1]
        found.append(" ".join("(" * o + leaf + ")" * c for o, leaf, c in zip(opening, leaves, closing, strict=True)))
        word, span = word_end, span_end
    return found


def model_with_little_room() -> prpn.Model:
    """A model whose table of rows holds some hundred words, and that remembers few chunks."""
    folded.ROW_BYTES, words.REMEMBERED_CHUNKS = 1 << 22, 500
    model = prpn.load()
    rows = model.parser.network.rows
    kernel = rows._kernel.reshape(len(rows._kernel), rows.windows, rows.channels)
    model.parser.network.rows = folded.Rows(rows.embedding, kernel, rows._start, limit=1 << 22)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks.threads", description=__doc__.partition("\n")[0])
    parser.add_argument("--sentences", type=int, default=200_000)
    parser.add_argument("--threads", type=int, default=8)
    arguments = parser.parse_args()
    lines, failed = some_lines(arguments.sentences), 0
    for name, model in (("roomy", prpn.load()), ("little room", model_with_little_room())):
        for way in WAYS:
            began = time.monotonic()
            count = differences(list(islice(lines, arguments.sentences)), arguments.threads, way, model)
            failed += count
            print(
                f"{name:12} {way:18} {count:,} of {len(lines):,} differ, {time.monotonic() - began:.0f} s", flush=True
            )
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
