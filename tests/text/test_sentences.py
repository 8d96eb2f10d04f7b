"""Prose, read one sentence a line."""

from __future__ import annotations

import io
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prpn.errors import InputError
from prpn.text import sentences as module
from prpn.text.files import read_blocks, read_line_blocks, read_lines, read_pieces
from prpn.text.sentences import in_sentences, sentences

pytest.importorskip("sentencex")

PROSE = """\
The old man sat on the
bench. He was tired; it
was late.\r

A heading without an end

Mr. Smith said so.   Did he?
今日は天気が
いい。散歩に行こう！
"""
SENTENCES = [
    "The old man sat on the bench.", "He was tired; it was late.", "A heading without an end", "Mr. Smith said so.",
    "Did he?", "今日は天気がいい。", "散歩に行こう！",
]  # fmt: skip


@pytest.fixture
def prose(tmp_path: Path) -> Path:
    path = tmp_path / "prose.txt"
    path.write_text(PROSE, encoding="utf-8")
    return path


def test_every_reader_reads_sentences(prose: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = in_sentences(str(prose))
    whole = "".join(f"{sentence}\n" for sentence in SENTENCES).encode()
    assert [line for _, line in read_lines(text)] == SENTENCES
    assert [piece for _, piece, _ in read_pieces(text)] == SENTENCES
    assert b"".join(read_blocks(text)) == whole
    assert b"".join(block for block in read_line_blocks(text) if isinstance(block, bytes)) == whole
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(PROSE.encode())))
    assert b"".join(read_blocks(in_sentences("-"))) == whole


def test_the_language_matters(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("Er kam am 3. Mai zu uns, z.B. nach Bonn.\n", encoding="utf-8")
    assert len(list(read_lines(in_sentences(str(tmp_path / "t"), "de")))) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"ok\n\nok\n\xff\n", "t:4: not UTF-8"), (b"a\n\0\n", "t:2: not text"), (b"", "t: the input")],
)
def test_what_is_not_text_is_named_by_its_own_line(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(read_pieces(in_sentences(str(tmp_path / "t"))))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencex", None)
    with pytest.raises(InputError, match="--sentences: needs the package sentencex; pip install sentencex"):
        in_sentences("x")


def at_points(text: str) -> list[str]:
    return [part.strip() + "." for part in text.split(".")[:-1]] + [text.split(".")[-1].strip()][: text[-1:] != "."]


@given(st.text("ab. \n", max_size=60), st.integers(1, 9), st.integers(2, 20))
def test_nothing_is_lost_however_it_comes(text: str, size: int, longest: int) -> None:
    pieces = []
    for number, line in enumerate(text.split("\n"), 1):
        parts = [line[begin : begin + size] for begin in range(0, len(line), size)] or [""]
        pieces += [(number, part, place == len(parts)) for place, part in enumerate(parts, 1)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LONGEST", longest)
        found = list(sentences(pieces, at_points))
    assert "".join("".join(found).split()) == "".join(text.split())
    if longest >= len(text):
        assert found == list(sentences([(n, line, True) for n, line in enumerate(text.split("\n"), 1)], at_points))


@pytest.mark.parametrize("unit", ["word ", "The man sat. ", "x", "The man sat.\n", "日本"])
def test_memory_does_not_grow_with_a_paragraph(unit: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(unit * (3_000_000 // len(unit)), encoding="utf-8")
    tracemalloc.start()
    size = sum(map(len, read_blocks(in_sentences(str(tmp_path / "t")))))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size > 2_000_000
    assert peak < 25_000_000
