from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prpn.errors import InputError
from prpn.text.compression import decompressed
from prpn.text.files import read_blocks, read_lines

zstandard = pytest.importorskip("zstandard")

TEXT = "sól og\nláð\n".encode() * 5000
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
}
KINDS = pytest.mark.parametrize("kind", COMPRESS)


def read(path: Path) -> bytes:
    return b"".join(read_blocks(path))


def stored(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@KINDS
@pytest.mark.parametrize("name", ["t.txt", "t.gz", "t"])
def test_the_content_tells_and_not_the_name(kind: str, name: str, tmp_path: Path) -> None:
    assert read(stored(tmp_path / name, COMPRESS[kind](TEXT))) == TEXT
    assert read(stored(tmp_path / name, TEXT)) == TEXT


@KINDS
def test_several_parts_are_one_text(kind: str, tmp_path: Path) -> None:
    compress = COMPRESS[kind]
    parts = compress(TEXT) + compress(b"") + compress(b"and more\n")
    assert read(stored(tmp_path / "t", parts)) == TEXT + b"and more\n"
    assert read(stored(tmp_path / "t", parts + bytes(1 << 17))) == TEXT + b"and more\n"


@KINDS
def test_a_file_that_is_cut_or_damaged_is_refused(kind: str, tmp_path: Path) -> None:
    whole = COMPRESS[kind](os.urandom(1000))
    path = tmp_path / "t"
    for cut in (len(whole) - 1, len(whole) // 2, 11):
        with pytest.raises(InputError, match=rf"t: broken {kind} data \(it is cut short\); compress or copy it again"):
            read(stored(path, whole[:cut]))
        with pytest.raises(InputError, match=f"broken {kind} data"):
            read(stored(path, whole + whole[:cut]))
    with pytest.raises(InputError, match=f"broken {kind} data"):
        read(stored(path, whole + b"something else"))
    if kind != "zstd":  # which has no checksum unless asked for
        with pytest.raises(InputError, match=f"broken {kind} data"):
            read(stored(path, whole[:60] + bytes([whole[60] ^ 1]) + whole[61:]))


@KINDS
def test_standard_input_and_pipes(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(COMPRESS[kind](TEXT))))
    assert b"".join(read_blocks("-")) == TEXT
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[COMPRESS[kind](TEXT)])
    writer.start()
    assert read(pipe) == TEXT
    writer.join()


class OneByOne(io.BytesIO):
    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(1)


@KINDS
def test_bytes_that_come_one_by_one(kind: str) -> None:
    source = decompressed(OneByOne(COMPRESS[kind](b"the old man")), "there")
    assert b"".join(iter(partial(source.read1, 3), b"")) == b"the old man"


@given(st.binary(max_size=12), st.sampled_from([b"", b"\x1f\x8b", b"BZh", b"BZh9", b"\xfd7z", b"(\xb5", b"PQ"]))
def test_what_only_begins_alike_is_left_as_it_is(rest: bytes, begin: bytes) -> None:
    content = begin + b"\n" + rest
    for bytes_ in (io.BytesIO(content), OneByOne(content)):
        source = decompressed(bytes_, "there")
        assert b"".join(iter(partial(source.read1, 64), b"")) == content


@KINDS
def test_memory_is_bounded(kind: str, tmp_path: Path) -> None:
    part = COMPRESS[kind](bytes(64_000_000) if kind != "bzip2" else bytes(8_000_000))
    path = stored(tmp_path / "t", part * 3)
    tracemalloc.start()
    size = sum(map(len, read_blocks(path)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size == 3 * (64_000_000 if kind != "bzip2" else 8_000_000)
    assert peak < 50_000_000


def test_without_the_package_zstd_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(tmp_path / "t", COMPRESS["zstd"](TEXT))
    for package in ("zstandard", "compression"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match="t: compressed by zstd, which needs a package; pip install zstandard"):
        read(path)


@KINDS
def test_lines_of_compressed_text(kind: str, tmp_path: Path) -> None:
    assert len(list(read_lines(stored(tmp_path / "t", COMPRESS[kind](TEXT))))) == 10_000


def test_a_typed_line_is_not_waited_for() -> None:
    program = (
        "from prpn.text.files import read_line_blocks\nfor block in read_line_blocks('-'): print(block, flush=True)"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"P\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"b'P\\n'\n"
        process.stdin.close()
