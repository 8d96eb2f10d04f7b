"""Text that becomes trees, in the native core and in numpy, against loops and against Tree objects line by line."""

from __future__ import annotations

import json
import random
import re
import string
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from prpn.config import Builder, TextConfig
from prpn.errors import InputError
from prpn.kernels import parsing
from prpn.parsing import folded
from prpn.parsing import text as parse_text
from prpn.parsing import words as word_reader
from prpn.parsing.folded import Folded, Rows
from prpn.parsing.parser import Parser
from prpn.text import files
from prpn.text.pieces import Piece
from prpn.text.tokenizer import Tokenizer
from tests.kernels.parsers import KERNELS, WORDS, expected_lines, needs_native, random_parser

FORMATS = ("brackets", "spans", "jsonl")
SPACES = [chr(point) for point in range(sys.maxunicode + 1) if chr(point).isspace()]
PIECES = st.sampled_from([
    *WORDS, "Cannot", "gonna", "U.S.", "x.", "(", ")", "[x]", '"', "\\", "'", "\x01", "\x7f", "\b", "日本", "1,000",
    "<unk>", "\ufeff", "\u200b", "\U0001f600", "ÅΣ", "…", "don't", "km/h", "zzz", "A" * 40,
])  # fmt: skip
LINES = st.lists(st.one_of(PIECES, st.sampled_from([" ", " ", *SPACES]).filter(lambda c: c != "\n")), max_size=25)
TEXTS = st.lists(LINES.map("".join), max_size=8)
KINDS = [
    (tokenizer, digits)
    for tokenizer in ("penn", "unicode", "none", "characters")
    for digits in ("keep", "N", "number")
    if (tokenizer, digits) != ("characters", "number")
]
CLASSES = ("<unk:capital>", "<unk:number>", "<unk::zz>", "<unk:capitals>", "<unk:capital:s>")
CONFIGS = st.builds(
    lambda kind, lowercase: TextConfig(tokenizer=kind[0], digits=kind[1], lowercase=lowercase),
    st.sampled_from(KINDS),
    st.booleans(),
)


def slow_scores(network: Folded, sentences: list[list[int]]) -> list[float]:
    """Word by word, in double precision."""
    rows, found = network.rows, []
    for words in sentences:
        vectors = [np.zeros(rows.embedding.shape[1])] * rows.windows
        vectors += [rows.embedding[word].astype(float) for word in (rows._start, *words)]
        vectors += [np.zeros_like(vectors[0])] * network.lookahead
        kernel = rows._kernel.astype(float).reshape(len(vectors[0]), rows.windows, rows.channels)
        for t in range(len(words)):
            first = t + 2 + network.lookahead
            seen = vectors[first : first + rows.windows]
            hidden = network.bias + sum(vector @ kernel[:, k] for k, vector in enumerate(seen))
            found.append(float(np.maximum(hidden, 0) @ network.head) + network.head_bias)
    return found


@pytest.mark.parametrize("kernels", KERNELS)
@given(
    seed=st.integers(0, 1000),
    channels=st.integers(1, 40),
    lookback=st.integers(0, 6),
    lookahead=st.integers(0, 6),
    size=st.integers(1, 20),
    lengths=st.lists(st.integers(0, 12), max_size=6),
    threads=st.integers(1, 4),
    rows=st.integers(0, 30),
)
def test_scores_are_those_of_a_loop_with_any_sizes_and_any_room(
    kernels: str,
    seed: int,
    channels: int,
    lookback: int,
    lookahead: int,
    size: int,
    lengths: list[int],
    threads: int,
    rows: int,
) -> None:
    windows = lookback + 1 + lookahead
    network = random_parser(seed, channels=channels, lookback=windows - 1, size=size).network
    network.lookahead = lookahead
    row_bytes = 4 * network.rows.windows * network.rows.channels
    draw = np.random.default_rng(seed)
    sentences = [draw.integers(0, len(WORDS) + 2, length).tolist() for length in lengths]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRPN_KERNELS", kernels)
        patch.setattr(parsing, "threads", lambda: threads)
        patch.setattr(folded, "WORDS_AT_ONCE", 1 + rows)
        kernel = network.rows._kernel.reshape(size, windows, -1)
        network.rows = Rows(network.rows.embedding, kernel, network.rows._start, limit=rows * row_bytes)
        ids = np.array([word for words in sentences for word in words], dtype=np.int32)
        found = network.scores(ids, np.cumsum(lengths, dtype=np.int64))
    np.testing.assert_allclose(found, slow_scores(network, sentences), rtol=1e-4, atol=1e-4)


def written(parser: Parser, path: Path, form: Any, builder: Any, tokenized: bool) -> list[str]:
    pieces, counted = [], 0
    for count, lines, _ in parse_text.parse_text(parser, str(path), form, builder, tokenized=tokenized):
        counted += count
        pieces += map(bytes, lines)
    text = b"".join(pieces).decode()
    assert text.endswith("\n") or not text
    assert text.count("\n") == counted
    return text.split("\n")[:-1]


@pytest.mark.parametrize("kernels", KERNELS)
@settings(max_examples=150)
@given(
    text=TEXTS,
    config=CONFIGS,
    form=st.sampled_from(FORMATS),
    builder=st.sampled_from(get_args(Builder)),
    flavour=st.sampled_from(["paper", "released"]),
    tokenized=st.booleans(),
    line_end=st.sampled_from(["\n", "\r\n"]),
    ended=st.booleans(),
    block=st.integers(1, 60),
    threads=st.integers(1, 4),
    remembered=st.integers(0, 20),
    broken=st.lists(st.tuples(st.integers(0, 200), st.sampled_from([b"\xff", b"\0", b"\xe2\x80", b"\xef\xbb\xbf"]))),
)
@example(["\ufeff"], TextConfig(), "jsonl", "paper", "paper", False, "\n", False, 5, 1, 9, [])
@example(["a\x1ca\u2028b c"], TextConfig(), "jsonl", "paper", "paper", True, "\r\n", True, 5, 1, 9, [(0, b"\xff\xfe")])
def test_lines_are_those_of_tree_objects(
    tmp_path_factory: pytest.TempPathFactory,
    kernels: str,
    text: list[str],
    config: TextConfig,
    form: str,
    builder: Any,
    flavour: str,
    tokenized: bool,
    line_end: str,
    ended: bool,
    block: int,
    threads: int,
    remembered: int,
    broken: list[tuple[int, bytes]],
) -> None:
    data = (line_end.join(text) + line_end * ended).encode()
    for place, what in broken:
        data = data[:place] + what + data[place:]
    path = tmp_path_factory.mktemp("text") / "text"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRPN_KERNELS", kernels)
        patch.setattr(parsing, "threads", lambda: threads)
        patch.setattr(parsing, "REMEMBERED_CHUNKS", remembered)
        patch.setattr(word_reader, "REMEMBERED_CHUNKS", remembered)
        patch.setattr(files, "BLOCK_BYTES", block)
        parser = random_parser(text=config, flavour=flavour, unknown_classes=CLASSES if ended else ())
        tokenized = tokenized and not parser.tokenizer.by_character
        found = written(parser, path, form, builder, tokenized)
        expected = list(expected_lines(parser, path, form, builder, tokenized))
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one == other or (kernels == "off" and close_call(one, other, form))


def close_call(one: str, other: str, form: str) -> bool:
    """Whether two lines differ only as sums in another order make them: numpy does not promise one."""
    if form != "jsonl":
        return re.sub("[()]|[0-9]+-", "", one) == re.sub("[()]|[0-9]+-", "", other)
    left, right = json.loads(one), json.loads(other)
    return left["words"] == right["words"] and np.allclose(left["distances"], right["distances"], atol=2e-6)


@needs_native
@given(text=TEXTS, config=CONFIGS, seed=st.integers(0, 1000), builder=st.sampled_from(get_args(Builder)))
def test_both_ways_agree_unless_distances_are_about_equal(
    tmp_path_factory: pytest.TempPathFactory, text: list[str], config: TextConfig, seed: int, builder: Any
) -> None:
    path = tmp_path_factory.mktemp("text") / "text"
    path.write_text("".join(f"{line}\n" for line in text), encoding="utf-8", newline="")
    found = {}
    for kernels in ("fp32", "off"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PRPN_KERNELS", kernels)
            parser = random_parser(seed, text=config, scale=0.5, unknown_classes=CLASSES if seed % 2 else ())
            lines = [json.loads(line) for line in written(parser, path, "jsonl", builder, False)]
            found[kernels] = lines, parser.scores([line["words"] for line in lines])
    for one, other, scores in zip(found["fp32"][0], found["off"][0], found["off"][1], strict=True):
        assert one["words"] == other["words"]
        np.testing.assert_allclose(one["distances"], other["distances"], atol=1e-5)
        gaps = np.diff(np.sort(scores))
        if (gaps > 1e-5).all():
            assert (one["tree"], one["spans"]) == (other["tree"], other["spans"])


@needs_native
def test_white_space_is_what_python_takes_for_it(tmp_path: Path) -> None:
    points = [chr(point) for point in (*range(1, 0xD800), *range(0xE000, 0x10100)) if point != 10]
    (tmp_path / "text").write_text("".join(f"{c}a{c}b{c}\n" for c in points), encoding="utf-8", newline="")
    parser = random_parser(channels=1, size=1, lookback=0)
    found = [json.loads(line)["words"] for line in written(parser, tmp_path / "text", "jsonl", "paper", True)]
    assert found == [f"{c}a{c}b{c}".split() for c in points]


NUMBERS = st.one_of(
    st.floats(0, 1),
    st.floats(allow_nan=True),
    st.integers(-(10**12), 10**12).map(lambda n: n / 10**6),
    st.integers(0, 2 * 10**6).map(lambda n: n / 2 / 10**6),
    st.integers(0, 200).map(lambda n: n / 10**6),
    st.sampled_from([0.0, -0.0, 5e-7, 4.9e-7, 1e-6, 9.9e-5, 1e-4, 99999.9999995, 1e15, 1e16, 1e22, 123456789012345.6]),
)


@needs_native
@settings(max_examples=300)
@given(st.lists(NUMBERS, min_size=1, max_size=30))
def test_distances_are_rounded_and_written_as_python_does(numbers: list[float]) -> None:
    def encode(words: Iterable[str]) -> list[int]:
        return [0 for _ in words]

    text = parsing.TextWithTrees(
        "jsonl", lambda chunk, _: [Piece(chunk, 0, len(chunk))], encode, {}, [], lowercase=False, unknown=0
    )
    text.read(b"a " * len(numbers) + b"\n")
    scores = np.zeros(len(numbers), dtype=np.float32)
    line = b"".join(text.write(scores, np.array(numbers), "paper")).decode()
    assert line.partition('"distances": ')[2].startswith(json.dumps([round(number, 6) for number in numbers]) + ",")


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("builder", get_args(Builder))
@pytest.mark.parametrize("scores", ["rising", "falling", "level", "random"])
def test_a_line_of_any_length_and_shape(
    kernels: str, builder: Any, scores: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRPN_KERNELS", kernels)
    places = np.arange(100_001, dtype=np.float32)
    values = {
        "rising": places,
        "falling": -places,
        "level": np.zeros_like(places),
        "random": np.random.default_rng(0).permutation(places),
    }[scores]
    parser = random_parser()
    monkeypatch.setattr(
        parser.network, "scores", lambda _, ends, __: np.concatenate([values[:n] for n in np.diff(ends, prepend=0)])
    )
    for form, count in {"brackets": 100_001, "labelled": 100_001, "spans": 5_000, "jsonl": 5_000}.items():
        (tmp_path / "text").write_bytes(b"a " * count + b"\n\na\na b")
        found = written(parser, tmp_path / "text", form, builder, False)
        assert found == list(expected_lines(parser, tmp_path / "text", form, builder, False))


@pytest.mark.parametrize("kernels", KERNELS)
def test_a_chunk_and_a_line_longer_than_blocks(kernels: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRPN_KERNELS", kernels)
    monkeypatch.setattr(files, "BLOCK_BYTES", 1000)
    parser = random_parser(text=TextConfig(tokenizer="unicode"))
    (tmp_path / "text").write_text("b" * 300_000 + " a" * 50_000 + " é.", encoding="utf-8")
    found = written(parser, tmp_path / "text", "brackets", "unbiased", False)
    assert found == list(expected_lines(parser, tmp_path / "text", "brackets", "unbiased", False))


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("form", FORMATS)
def test_many_lines_at_once(kernels: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRPN_KERNELS", kernels)
    draw = random.Random(0)
    words = [*WORDS, *string.ascii_lowercase, "é", "x.", "(a)"]
    lines = [" ".join(draw.choices(words, k=draw.randint(0, 12))) for _ in range(5_000)]
    (tmp_path / "text").write_text("\n".join(lines), encoding="utf-8")
    parser = random_parser(text=TextConfig(tokenizer="penn"))
    found = written(parser, tmp_path / "text", form, "paper", False)
    expected = expected_lines(parser, tmp_path / "text", form, "paper", False)
    different = [pair for pair in zip(found, expected, strict=True) if pair[0] != pair[1]]
    assert all(kernels == "off" and close_call(*pair, form) for pair in different)


@pytest.mark.parametrize("kernels", KERNELS)
def test_a_chunk_that_ends_a_line_is_another_one(kernels: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRPN_KERNELS", kernels)
    monkeypatch.setattr(files, "BLOCK_BYTES", 10)
    (tmp_path / "text").write_text("in the U.S. now\nin the U.S.\nthe U.S. is\nU.S.\n")
    parser = random_parser(text=TextConfig(tokenizer="penn"))
    found = [json.loads(line)["words"] for line in written(parser, tmp_path / "text", "jsonl", "paper", False)]
    assert [len(words) for words in found] == [4, 4, 3, 2]


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("remembered", [0, 100])
def test_chunks_are_forgotten_when_there_are_too_many(
    kernels: str, remembered: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRPN_KERNELS", kernels)
    monkeypatch.setattr(parsing, "REMEMBERED_CHUNKS", remembered)
    monkeypatch.setattr(word_reader, "REMEMBERED_CHUNKS", remembered)
    monkeypatch.setattr(files, "BLOCK_BYTES", 6)
    (tmp_path / "text").write_text("1 2 3 4\n" * 3)
    parser, chunks = random_parser(), []
    split = parser.tokenizer.pieces_of_chunk
    monkeypatch.setattr(parser.tokenizer, "pieces_of_chunk", lambda *chunk: chunks.append(chunk) or split(*chunk))
    assert len(written(parser, tmp_path / "text", "brackets", "paper", False)) == 3
    assert (len(chunks) > 4) == (remembered == 0)
    assert len(set(chunks)) == 4


@given(config=CONFIGS, word=st.text(string.ascii_letters, min_size=1, max_size=8), is_last=st.booleans())
@example(TextConfig(tokenizer="penn"), "cannot", False)
@example(TextConfig(tokenizer="penn"), "GONNA", True)
@example(TextConfig(digits="number", lowercase=True), "N", True)
def test_letters_are_left_whole_but_for_the_exceptions(config: TextConfig, word: str, is_last: bool) -> None:
    tokenizer = Tokenizer(config)
    if word.lower() not in tokenizer.exceptions and not tokenizer.by_character:
        assert tokenizer.split_chunk(word, is_last) == [word]
        assert tokenizer.normalize(word) == (word.lower() if config.lowercase else word)


@pytest.mark.parametrize("kernels", KERNELS)
def test_what_is_not_a_number_is_refused(kernels: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRPN_KERNELS", kernels)
    parser = random_parser()
    parser.network.rows.embedding[parser.vocabulary.encode(["old"])] = np.nan
    (tmp_path / "text").write_text("the man\nthe old man\n")
    with pytest.raises(InputError, match=r"the distance before 'old' is nan.*diverge"):
        written(parser, tmp_path / "text", "brackets", "paper", False)


@pytest.mark.parametrize("kernels", KERNELS)
def test_rows_do_not_depend_on_what_they_are_made_with(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRPN_KERNELS", kernels)
    ends = np.array([len(WORDS)])
    ids = np.arange(len(WORDS), dtype=np.int32)
    one, other = (random_parser(channels=37, size=19).network for _ in range(2))
    for word in ids:
        other.rows.look_up(ids[word : word + 1])
    tolerance = 0.0 if kernels == "fp32" else 1e-5  # numpy's products add up in an order that depends on their sizes
    np.testing.assert_allclose(one.scores(ids, ends), other.scores(ids, ends), rtol=tolerance, atol=tolerance)
    found = other.rows.look_up(ids)
    assert found is not None
    assert all(a < b for a, b in pairwise(sorted(set(found[1].tolist()))))


@pytest.mark.parametrize("kernels", KERNELS)
def test_unknown_words_are_parsed_by_their_class(kernels: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRPN_KERNELS", kernels)
    parser = random_parser(unknown_classes=CLASSES)
    names = parser.vocabulary
    assert names.decode(names.encode(["Pizza", "pizzazz", "Texas", "NATO", "7up"])) == [
        "<unk:capital>", "<unk::zz>", "<unk:capital:s>", "<unk:capitals>", "<unk:number>"
    ]  # fmt: skip
    path = tmp_path / "text"
    path.write_text("Pizza pizzazz Texas\n<unk:capital> <unk::zz> <unk:capital:s>\nqq qq qq\n")
    rows = [json.loads(line)["distances"] for line in written(parser, path, "jsonl", "paper", False)]
    assert rows[0] == pytest.approx(rows[1])
    assert rows[0] != pytest.approx(rows[2])
