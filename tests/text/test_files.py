import io
import lzma
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prpn.errors import InputError
from prpn.text import files
from prpn.text.files import read_blocks, read_lines, read_pieces

TEXT = "\ufeffsól og\r\n\nláð\r og 日本\nend"
EMPTY_XZ = lzma.compress(b"")
LINES = [(1, "sól og"), (2, ""), (3, "láð\r og 日本"), (4, "end")]


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_lines_are_numbered(tmp_path: Path) -> None:
    path = write(tmp_path / "t.txt", TEXT.encode())
    assert list(read_lines(path)) == list(read_lines(str(path))) == LINES
    assert b"".join(read_blocks(path)) == TEXT.encode()


def test_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.BytesIO(TEXT.encode())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stdin))
    assert list(read_lines("-")) == LINES
    assert not stdin.closed


@given(text=st.text(alphabet="aé日😀 \r\n", min_size=1), size=st.integers(1, 5))
def test_a_long_line_comes_in_pieces_and_nothing_is_lost(
    tmp_path_factory: pytest.TempPathFactory, text: str, size: int
) -> None:
    path = write(tmp_path_factory.mktemp("pieces") / "t.txt", text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "PIECE_BYTES", size)
        lines = list(read_lines(path))
        pieces = list(read_pieces(path))
        assert all(len(piece) <= size + 1 for _, piece, _ in pieces)
    joined = [""]
    for _, piece, ends_line in pieces:
        joined[-1] += piece
        joined += [""] * ends_line
    assert [*(line for _, line in lines), ""] == joined
    expected = text.removesuffix("\n").split("\n")
    ended = [line.removesuffix("\r") for line in expected[:-1]]
    final = expected[-1].removesuffix("\r") if text.endswith("\n") else expected[-1]
    assert lines == list(enumerate([*ended, final], 1))


def test_the_observer_sees_all_decompressed_bytes(tmp_path: Path) -> None:
    path = write(tmp_path / "t.xz", lzma.compress(TEXT.encode()))
    seen: list[bytes] = []
    list(read_pieces(path, observe=seen.append))
    assert b"".join(seen) == TEXT.encode()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("f.txt", b"", "f.txt: the input is empty; give a text"),
        ("f.txt", EMPTY_XZ, "f.txt: the input is empty; give a text"),
        ("f.txt", b"ok\n" * 811 + b"caf\xe9\n", "f.txt:812: not UTF-8 (byte 0xe9); convert it, e.g. iconv -f latin1"),
        ("f.txt", b"ok\ncaf\xc3", "f.txt:2: not UTF-8 (byte 0xc3); convert it"),
        ("f.txt", "ok".encode("utf-16"), "f.txt:1: this is UTF-16, not UTF-8; convert it, e.g. iconv -f utf-16"),
        ("f.txt", b"ok\n\x00\n", "f.txt:2: not text (it holds a NUL byte); give plain text"),
    ],
)
def test_unusable_content_names_file_line_and_remedy(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(InputError) as error:
        list(read_pieces(path))
    assert str(error.value).startswith(f"{tmp_path}/{message}")
    if content not in (b"", EMPTY_XZ):
        unusable = [line for _, line in read_lines(path) if isinstance(line, InputError)]
        assert [str(line) for line in unusable] == [str(error.value)]


def test_a_line_that_is_no_text_keeps_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "f.txt", b"one\n\xff\n\x00\nfour")
    lines = list(read_lines(path))
    assert [number for number, _ in lines] == [1, 2, 3, 4]
    assert (lines[0][1], lines[3][1]) == ("one", "four")
    assert all(isinstance(line, InputError) for _, line in lines[1:3])


def test_unusable_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"none\.txt: no such file; check the name"):
        list(read_pieces(tmp_path / "none.txt"))
    with pytest.raises(InputError, match='"": a file without a name; give a name'):
        list(read_pieces(""))
    with pytest.raises(InputError, match="this is a folder; name the files in it"):
        list(read_pieces(tmp_path))
    with pytest.raises(InputError, match="cannot be read"):
        list(read_pieces(tmp_path / ("x" * 300)))

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(files, "_source", refuse)
    with pytest.raises(InputError, match=r"mine\.txt: no permission to read it; change"):
        list(read_pieces("mine.txt"))


def test_no_line_is_no_error_for_those_who_answer_line_by_line(tmp_path: Path) -> None:
    assert list(read_lines(write(tmp_path / "f.txt", b""))) == []
