import gzip
import hashlib
import io
import lzma
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from prpn.config import TextConfig
from prpn.errors import InputError
from prpn.text import corpus as corpus_module
from prpn.text import files
from prpn.text.cache import ArrayWriter, DamagedError, default_cache, read_array, rereadable
from prpn.text.corpus import Corpus, count_tokens, encode
from prpn.text.tokenizer import Tokenizer
from prpn.text.vocabulary import Vocabulary

from .shared_data import shared

TEXT = "the old man sat\n\nthe <unk> sat\non the bench\n"
WORDS = Tokenizer(TextConfig(tokenizer="none"))
VOCABULARY = Vocabulary(("<unk>", "</s>", "the", "sat", "old", "man", "on"))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


def _replaced(by: Callable[[Path], object]) -> Callable[[Path], object]:
    def harm(path: Path) -> None:
        path.unlink()
        by(path)

    return harm


HARMS: dict[str, Callable[[Path], object]] = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-5]),
    "empty": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "gone": Path.unlink,
    "folder": _replaced(lambda path: (path / "inner").mkdir(parents=True)),
    "pipe": _replaced(os.mkfifo),
    "link": _replaced(lambda path: path.symlink_to("/dev/zero")),
    "link to nowhere": _replaced(lambda path: path.symlink_to("nowhere")),
}
"""What can befall a file of the cache."""


def decoded(corpus: Corpus) -> str:
    return " ".join(VOCABULARY.decode(corpus.ids.tolist()))


def test_counts_and_checksum(text: Path) -> None:
    counted = count_tokens([text], WORDS)
    expected = {"the": 3, "sat": 2, "</s>": 3, "old": 1, "man": 1, "<unk>": 1, "on": 1, "bench": 1}
    assert counted.counts == Counter(expected)
    assert counted.checksum == hashlib.sha256(TEXT.encode()).hexdigest()


def test_encode(text: Path, tmp_path: Path) -> None:
    corpus = encode([text], WORDS, VOCABULARY, tmp_path / "cache")
    assert decoded(corpus) == "the old man sat </s> the <unk> sat </s> on the <unk> </s>"
    assert corpus.ids.dtype == np.int32
    assert isinstance(corpus.ids, np.memmap)
    assert (corpus.sentences, corpus.unknown) == (3, 2)
    assert corpus.characters == len(TEXT.replace("\n\n", "\n"))
    assert corpus.checksum == count_tokens([text], WORDS).checksum


def test_blank_lines_and_missing_line_ends(text: Path, tmp_path: Path) -> None:
    blank = Tokenizer(TextConfig(tokenizer="none", blank_lines=True))
    assert "sat </s> </s> the" in decoded(encode([text], blank, VOCABULARY, tmp_path))
    stream = Tokenizer(TextConfig(tokenizer="none", line_ends=False))
    corpus = encode([text], stream, VOCABULARY, tmp_path)
    assert decoded(corpus) == "the old man sat the <unk> sat on the <unk>"
    assert (corpus.sentences, corpus.characters) == (1, len(TEXT.replace("\n\n", "\n")))


def test_a_line_that_brings_its_own_end_is_not_closed_twice(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("the man <eos>\nsat </s>\non\n")
    corpus = encode([path], WORDS, VOCABULARY, tmp_path)
    assert decoded(corpus) == "the man </s> sat </s> on </s>"
    assert corpus.characters == len("the man\nsat\non\n")


def test_characters(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text(" a b \n\n c\n")
    for line_ends, expected in ((True, ["a", "_", "b", "</s>", "c", "</s>"]), (False, ["a", "_", "b", "_", "c"])):
        tokenizer = Tokenizer(TextConfig(tokenizer="characters", line_ends=line_ends))
        vocabulary = Vocabulary.build(count_tokens([path], tokenizer).counts, 1, 0, with_start=False)
        corpus = encode([path], tokenizer, vocabulary, tmp_path)
        assert vocabulary.decode(corpus.ids.tolist()) == expected
        assert (corpus.characters, corpus.lengths, corpus.unknown) == (len(expected), None, 0)


def test_several_files_are_one_text_and_compression_does_not_matter(text: Path, tmp_path: Path) -> None:
    packed, squeezed = tmp_path / "a.gz", tmp_path / "a.xz"
    packed.write_bytes(gzip.compress(TEXT.encode()))
    squeezed.write_bytes(lzma.compress(TEXT.encode()))
    plain = encode([text], WORDS, VOCABULARY, tmp_path / "cache")
    for path in (packed, squeezed):
        assert np.array_equal(encode([path], WORDS, VOCABULARY, tmp_path / "cache").ids, plain.ids)
    assert len(list((tmp_path / "cache").glob("*.json"))) == 1
    both = encode([text, packed], WORDS, VOCABULARY, tmp_path / "cache")
    assert np.array_equal(both.ids, np.tile(plain.ids, 2))


def test_where_a_file_ends_matters(tmp_path: Path) -> None:
    for name, content in (("a", "the"), ("b", " man"), ("c", "the man")):
        (tmp_path / name).write_text(content)
    two = encode([tmp_path / "a", tmp_path / "b"], WORDS, VOCABULARY, tmp_path)
    one = encode([tmp_path / "c"], WORDS, VOCABULARY, tmp_path)
    assert (decoded(two), decoded(one)) == ("the </s> man </s>", "the man </s>")
    assert two.checksum == one.checksum


def test_the_second_time_comes_from_the_cache(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = encode([text], WORDS, VOCABULARY, tmp_path)

    def refuse(*_: object) -> None:
        raise AssertionError("encoded twice")

    monkeypatch.setattr(corpus_module, "_write", refuse)
    second = encode([text], WORDS, VOCABULARY, tmp_path)
    assert np.array_equal(first.ids, second.ids)
    assert first.lengths is not None
    assert second.lengths is not None
    assert np.array_equal(first.lengths, second.lengths)
    assert (first.sentences, first.unknown, first.characters) == (second.sentences, second.unknown, second.characters)
    with pytest.raises(AssertionError, match="encoded twice"):
        encode([text], Tokenizer(TextConfig(tokenizer="none", lowercase=True)), VOCABULARY, tmp_path)
    with pytest.raises(AssertionError, match="encoded twice"):
        encode([text], WORDS, Vocabulary(("<unk>", "</s>", "the")), tmp_path)


@pytest.mark.parametrize("suffix", [".json", ".ids.npy", ".lengths.npy"])
@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_cache_is_made_anew(
    text: Path, tmp_path: Path, suffix: str, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    cache = tmp_path / "cache"
    expected = decoded(encode([text], WORDS, VOCABULARY, cache))
    whole = {path.name: path.read_bytes() for path in cache.iterdir()}
    [damaged] = cache.glob(f"*{suffix}")
    HARMS[harm](damaged)
    assert caplog.messages == []
    again = encode([text], WORDS, VOCABULARY, cache)
    assert decoded(again) == expected
    if not (harm == "gone" and suffix == ".json"):
        [message] = caplog.messages
        assert message.startswith(f"{cache}: the cached text is damaged and made anew (")
    del again
    assert {path.name: path.read_bytes() for path in cache.iterdir()} == whole
    assert all(path.is_file() and not path.is_symlink() for path in cache.iterdir())


def test_one_flipped_bit_of_the_cache_is_noticed_wherever_it_is(
    text: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = encode([text], WORDS, VOCABULARY, tmp_path / "cache")
    for path in list((tmp_path / "cache").iterdir()):
        content = path.read_bytes()
        for place in range(0, len(content), 7 if path.suffix == ".npy" else 1):
            path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            found = encode([text], WORDS, VOCABULARY, tmp_path / "cache")
            assert np.array_equal(found.ids, expected.ids)
            assert found.lengths is not None
            assert expected.lengths is not None
            assert np.array_equal(found.lengths, expected.lengths)
            assert (found.sentences, found.unknown, found.checksum) == (3, 2, expected.checksum)
            path.unlink()  # what was mapped stays what it was
            path.write_bytes(content)


def test_ids_that_are_no_words_are_never_given_out(text: Path, tmp_path: Path) -> None:
    encode([text], WORDS, VOCABULARY, tmp_path / "cache")
    [path] = (tmp_path / "cache").glob("*.ids.npy")
    with path.open("r+b") as file:
        header = np.load(path).tobytes()
        writer = ArrayWriter(file, np.int32)
        writer.append(np.full(len(header) // 4, len(VOCABULARY), dtype=np.int32))
        written = writer.finish()
    with pytest.raises(DamagedError, match="values out of range"):
        read_array(path, written, 0, len(VOCABULARY) - 1)
    with pytest.raises(DamagedError, match="int32"):
        read_array(path, {**written, "type": "<i8"}, 0, len(VOCABULARY))
    assert len(read_array(path, written, 0, len(VOCABULARY))) == written["length"]


def test_dying_half_way_leaves_no_final_file(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_module, "_TOKENS_AT_ONCE", 1)
    whole = corpus_module.closed_lines

    def dying(*arguments: object) -> Iterator[list[str]]:
        yield next(whole(*arguments))  # type: ignore[arg-type]
        seen.extend(entry.name for entry in cache.iterdir())
        raise KeyboardInterrupt

    cache, seen = tmp_path / "cache", list[str]()
    cache.mkdir()
    monkeypatch.setattr(corpus_module, "closed_lines", dying)
    with pytest.raises(KeyboardInterrupt):
        encode([text], WORDS, VOCABULARY, cache)
    assert seen
    assert all(name.endswith(".tmp") for name in seen)
    assert list(cache.iterdir()) == []


def test_a_text_that_grows_while_it_is_read_is_not_kept(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = corpus_module.closed_lines

    def grown(*arguments: object) -> Iterator[list[str]]:
        text.write_text(TEXT + "the man\n")
        return whole(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(corpus_module, "closed_lines", grown)
    with pytest.raises(InputError, match=r"text\.txt: changed while it was read; run again"):
        encode([text], WORDS, VOCABULARY, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []
    assert decoded(encode([text], WORDS, VOCABULARY, tmp_path / "cache")).endswith("the man </s>")


def test_standard_input_and_pipes_can_be_counted_and_encoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(TEXT.encode())))
    with rereadable(["-"], tmp_path) as paths:
        assert count_tokens(paths, WORDS).counts["the"] == 3
        assert encode(paths, WORDS, VOCABULARY, tmp_path).sentences == 3
    assert list(tmp_path.glob("input-*")) == []

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(TEXT,))
    writer.start()
    assert encode([pipe], WORDS, VOCABULARY, tmp_path).sentences == 3
    writer.join()


def test_a_fault_in_standard_input_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"ok\n\xe9\n")))
    with pytest.raises(InputError, match=r"^standard input:2: not UTF-8 \(byte 0xe9\)"):
        encode(["-"], WORDS, VOCABULARY, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_text_without_tokens_and_an_unusable_cache(text: Path, tmp_path: Path) -> None:
    blank = tmp_path / "blank.txt"
    blank.write_text(" \n\n")
    with pytest.raises(InputError, match=r"blank\.txt: no token in it"):
        encode([blank], WORDS, VOCABULARY, tmp_path)
    with pytest.raises(InputError, match=r"cannot write the cache .*; set PRPN_CACHE"):
        encode([text], WORDS, VOCABULARY, text / "cache")


def test_progress_counts_every_byte(text: Path, tmp_path: Path) -> None:
    seen: list[int] = []
    count_tokens([text], WORDS, seen.append)
    encode([text], WORDS, VOCABULARY, tmp_path, seen.append)
    assert sum(seen) == 2 * len(TEXT)


def test_split_at_a_sentence_end(text: Path, tmp_path: Path) -> None:
    corpus = encode([text], WORDS, VOCABULARY, tmp_path)
    first, second = corpus.split(0.3, VOCABULARY)
    assert decoded(first) == "the old man sat </s> the <unk> sat </s>"
    assert decoded(second) == "on the <unk> </s>"
    assert (first.sentences, second.sentences) == (2, 1)
    assert (first.unknown, second.unknown) == (1, 1)
    assert (first.characters, second.characters) == (len("the old man sat\nthe <unk> sat\n"), len("on the bench\n"))


def test_split_without_line_ends_and_of_too_short_texts(text: Path, tmp_path: Path) -> None:
    stream = Tokenizer(TextConfig(tokenizer="none", line_ends=False))
    first, second = encode([text], stream, VOCABULARY, tmp_path).split(0.2, VOCABULARY)
    assert (len(first.ids), len(second.ids)) == (8, 2)
    first, second = encode([text], stream, VOCABULARY, tmp_path).split(0.0001, VOCABULARY)
    assert len(second.ids) == 1
    with pytest.raises(InputError, match="too short to hold a part out"):
        second.split(0.5, VOCABULARY)
    one_line = tmp_path / "one.txt"
    one_line.write_text("the old man\n")
    with pytest.raises(InputError, match="too short to hold a part out"):
        encode([one_line], WORDS, VOCABULARY, tmp_path).split(0.5, VOCABULARY)


def test_default_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRPN_CACHE", "/own")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert default_cache() == Path("/own")
    monkeypatch.delenv("PRPN_CACHE")
    assert default_cache() == Path("/xdg/prpn")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert default_cache() == Path("/home/someone/.cache/prpn")


@pytest.mark.parametrize(
    ("kind", "types", "sizes"),
    [("none", 10_000, (929_589, 73_760, 82_430)), ("characters", 51, (5_017_482, 393_042, 442_423))],
)
def test_the_penn_treebank_has_its_published_size(
    tmp_path: Path, kind: str, types: int, sizes: tuple[int, ...]
) -> None:
    tokenizer = Tokenizer(TextConfig(tokenizer=kind))  # type: ignore[arg-type]
    counts = count_tokens([shared("ptb/ptb.train.txt")], tokenizer).counts
    vocabulary = Vocabulary.build(counts, 1, 0, with_start=False)
    parts = [encode([shared(f"ptb/ptb.{name}.txt")], tokenizer, vocabulary, tmp_path) for name in _PARTS]
    assert len(vocabulary) == types
    assert tuple(len(part.ids) for part in parts) == sizes
    assert tuple(part.characters for part in parts) == (5_017_482, 393_042, 442_423)


_PARTS = ("train", "valid", "test")


def test_one_line_of_several_megabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lzma.open(shared("text8/text8-first-74M.xz")) as whole:
        content = whole.read(3_000_000)
    path = tmp_path / "text8"
    path.write_bytes(content)
    words = content.decode().split()
    tokenizer = Tokenizer(TextConfig(tokenizer="none", line_ends=False))
    vocabulary = Vocabulary.build(Counter(words), 1, 0, with_start=False)
    assert max(len(piece) for _, piece, _ in files.read_pieces(path)) <= files.PIECE_BYTES
    assert vocabulary.decode(encode([path], tokenizer, vocabulary, tmp_path).ids.tolist()) == words
    characters = Tokenizer(TextConfig(tokenizer="characters", line_ends=False))
    counted = count_tokens([path], characters).counts
    assert counted.total() == len(content.strip())
