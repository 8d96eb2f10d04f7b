import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prpn.errors import ConfigError, InputError
from prpn.text.unknown_words import classes_of
from prpn.text.vocabulary import Vocabulary, is_unknown

COUNTS = {"b": 2, "a": 2, "é": 5, "<unk>": 9, "rare": 1, "</s>": 4, "<s>": 3}


def test_special_tokens_come_first_then_falling_counts() -> None:
    stream = Vocabulary.build(COUNTS, 1, 0, with_start=False)
    assert stream.tokens == ("<unk>", "</s>", "é", "a", "b", "rare")
    assert (stream.unknown, stream.end, stream.start, len(stream)) == (0, 1, 1, 6)
    sentences = Vocabulary.build(COUNTS, 2, 0, with_start=True)
    assert sentences.tokens == ("<unk>", "</s>", "<s>", "é", "a", "b")
    assert sentences.start == 2
    assert Vocabulary.build(COUNTS, 1, 4, with_start=False).tokens == ("<unk>", "</s>", "é", "a")


@given(st.dictionaries(st.text(min_size=1), st.integers(1, 3), min_size=1).flatmap(
    lambda counts: st.tuples(st.permutations(list(counts.items())), st.just(counts))
))  # fmt: skip
def test_order_depends_on_the_counts_alone(drawn: tuple[list[tuple[str, int]], dict[str, int]]) -> None:
    shuffled, counts = drawn
    assert Vocabulary.build(dict(shuffled), 1, 0, with_start=False) == Vocabulary.build(counts, 1, 0, with_start=False)


def test_encode_and_decode() -> None:
    vocabulary = Vocabulary.build(COUNTS, 2, 0, with_start=False)
    assert vocabulary.encode(["a", "rare", "</s>"]) == [3, 0, 1]
    assert vocabulary.decode([3, 0, 1]) == ["a", "<unk>", "</s>"]
    assert "a" in vocabulary
    assert "rare" not in vocabulary


RARE = {"the": 50, "running": 3, "swimming": 2, "Boston": 3, "NASA": 1, "x-ray": 1, "1980s": 4, "B2B": 1, "z": 1}


def test_classes_of_unknown_words_stand_before_the_words_and_take_them_in() -> None:
    vocabulary = Vocabulary.build(RARE, 5, 0, with_start=False, unknown_classes=6)
    assert vocabulary.tokens[:2] == ("<unk>", "</s>")
    assert vocabulary.tokens[-1] == "the"
    classes = vocabulary.tokens[2:-1]
    assert classes == ("<unk::g>", "<unk::ing>", "<unk::ng>", "<unk:number:s>", "<unk:number>", "<unk:capital:n>")
    words = ["jogging", "song", "1990s", "1990", "Houston", "the", "a", "<unk>"]
    assert vocabulary.decode(vocabulary.encode(words)) == [
        "<unk::ing>", "<unk::ng>", "<unk:number:s>", "<unk:number>", "<unk:capital:n>", "the", "<unk>", "<unk>",
    ]  # fmt: skip
    assert vocabulary.unknown_ids == (0, 2, 3, 4, 5, 6, 7)
    assert vocabulary.has_classes


@pytest.mark.parametrize("unknown_classes", [0, 6])
def test_classes_that_the_text_itself_holds_are_no_words(unknown_classes: int) -> None:
    written = {"<unk::ing>": 9, "<unk:capital:xyz>": 9}
    without, vocabulary = (
        Vocabulary.build(counts, 5, 0, with_start=False, unknown_classes=unknown_classes)
        for counts in (RARE, RARE | written)
    )
    assert vocabulary == without
    known = "<unk::ing>" if unknown_classes else "<unk>"
    assert vocabulary.decode(vocabulary.encode(written)) == [known, "<unk>"]


def test_classes_count_towards_the_size() -> None:
    counts = {f"word{letter}": 9 for letter in "abcdefgh"}
    vocabulary = Vocabulary.build(counts, 1, 9, with_start=False, unknown_classes=3)
    assert len(vocabulary) == 9
    assert sum(map(is_unknown, vocabulary.tokens)) == 4
    with pytest.raises(ConfigError, match="empty vocabulary"):
        Vocabulary.build(counts, 1, 5, with_start=False, unknown_classes=3)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("jogging", ["<unk::ing>", "<unk::ng>", "<unk::g>"]),
        ("cat", ["<unk::t>"]),
        ("of", []),
        ("Reading", ["<unk:capital:ing>", "<unk:capital:ng>", "<unk:capital:g>", "<unk:capital>"]),
        ("NASA", ["<unk:capitals:sa>", "<unk:capitals:a>", "<unk:capitals>"]),
        ("I", ["<unk:capital>"]),
        ("1980", ["<unk:number>"]),
        ("Mid-1980s", ["<unk:number+hyphen+capital:s>", "<unk:number+hyphen+capital>"]),
        ("-", []),
        ("hús", ["<unk::s>"]),
        ("Ærlig", ["<unk:capital:lig>", "<unk:capital:ig>", "<unk:capital:g>", "<unk:capital>"]),
    ],
)
def test_classes_of_a_word_from_narrow_to_wide(word: str, expected: list[str]) -> None:
    assert list(classes_of(word)) == expected


@given(st.text(max_size=12))
def test_any_word_has_classes_of_its_own_kind(word: str) -> None:
    found = list(classes_of(word))
    assert len(set(found)) == len(found) <= 4
    assert all(is_unknown(each) for each in found)


@pytest.mark.parametrize(("counts", "minimum", "maximum"), [({}, 1, 0), ({"<unk>": 3}, 1, 0), (COUNTS, 9, 0)])
def test_an_empty_vocabulary_is_refused(counts: dict[str, int], minimum: int, maximum: int) -> None:
    with pytest.raises(ConfigError, match=r"empty vocabulary: .* give more text, lower text\.minimum_count"):
        Vocabulary.build(counts, minimum, maximum, with_start=False)


def test_a_limit_that_leaves_only_special_tokens_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"raise text\.maximum_size"):
        Vocabulary.build(COUNTS, 1, 3, with_start=True)


def test_save_and_load(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.json"
    vocabulary = Vocabulary.build(COUNTS, 1, 0, with_start=False)
    vocabulary.save(path)
    assert "é" in path.read_text(encoding="utf-8")
    assert json.loads(path.read_bytes()) == {"tokens": list(vocabulary.tokens)}
    assert Vocabulary.load(path) == vocabulary
    assert Vocabulary.load(path).fingerprint == vocabulary.fingerprint
    assert vocabulary.fingerprint != Vocabulary.build(COUNTS, 2, 0, with_start=False).fingerprint
    assert [entry.name for entry in tmp_path.iterdir()] == ["vocabulary.json"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"tokens":\n [', "vocabulary.json:2: not valid JSON"),
        (b"\xff\xfe", "not UTF-8|not valid JSON"),
        (b"[]", "not a vocabulary"),
        (b'{"tokens": [1]}', "not a vocabulary"),
        (b'{"tokens": ["a"]}', "needs <unk> and </s>"),
        (b'{"tokens": ["<unk>", "</s>", "a", "a"]}', "repeats some"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "vocabulary.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        Vocabulary.load(path)
    assert "vocabulary.json" in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json: no such file"):
        Vocabulary.load(tmp_path / "none.json")
