import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from prpn.config import TextConfig
from prpn.text import penn
from prpn.text.tokenizer import Tokenizer
from tests.refusals import raises_config_error

from .shared_data import shared

KINDS = ("unicode", "penn", "characters", "none")


def tokenizer(kind: str, *, tokenized: bool = False, **settings: object) -> Tokenizer:
    return Tokenizer(TextConfig(tokenizer=kind, **settings), tokenized)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ('He said: "I don\'t know (really)."', 'He said : " I don\'t know ( really ) . "'),
        ("a well-known www.x.com, 3.14 or 1,000; a,b", "a well-known www.x.com , 3.14 or 1,000 ; a , b"),
        ("the U.S. and Ph.D., e.g. this.", "the U.S. and Ph.D. , e.g. this ."),
        ("wait...what?! no--yes—so", "wait ... what ? ! no -- yes — so"),
        ("हिन्दी में। cafe\u0301, ❤\ufe0f!!", "हिन्दी में । cafe\u0301 , ❤\ufe0f !!"),
        ("你好。再见", "你好 。 再见"),
        ("<unk>, (<UNK>) <eos>", "<unk> , ( <unk> ) </s>"),
    ],
)
def test_unicode(line: str, tokens: str) -> None:
    assert tokenizer("unicode").tokens(line) == tokens.split()


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ('He said, "I don\'t know (really)."', "He said , `` I do n't know -LRB- really -RRB- . ''"),
        ("It's Mr. Smith's; we cannot and aren't gonna", "It 's Mr. Smith 's ; we can not and are n't gon na"),
        ("CAN'T Cannot 'Tis he'd've “Don’t”", "CA N'T Can not 'T is he 'd 've `` Do n't ''"),
        ("$1,000.50 or 50% (62%-owned) US$5, -3", "$ 1,000.50 or 50 % -LRB- 62%-owned -RRB- US$ 5 , -3"),
        ("so... no--yes—maybe…", "so ... no -- yes -- maybe ..."),
        ("J. Doe left. At 5 p.m. in mid-Sept. he", "J. Doe left . At 5 p.m. in mid-Sept. he"),
        ("in the U.S.", "in the U.S. ."),
        ("by Acme Inc.", "by Acme Inc. ."),
        ("plan B.", "plan B ."),
        ("the dogs' toys of 'em, the '90s, 'quoted' text", "the dogs ' toys of 'em , the '90s , ` quoted ' text"),
        ("[a] {b} AT&T and/or U.S.-based", "-LSB- a -RSB- -LCB- b -RCB- AT&T and/or U.S.-based"),
        ('( "word" ) the "', "-LRB- `` word '' -RRB- the ''"),
        ("<unk>'s <UNK>.", "<unk> 's <unk> ."),
    ],
)
def test_penn(line: str, tokens: str) -> None:
    assert tokenizer("penn").tokens(line) == tokens.split()


@given(
    st.lists(st.sampled_from(["cannot", "gonna", "a", "LRB", "US", "HK", "St", "9", "1980", "s", "-", "-"])),
    st.booleans(),
)
def test_penn_looks_no_closer_only_where_that_changes_nothing(pieces: list[str], is_last: bool) -> None:
    chunk = "".join(pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(penn, "_WHOLE", re.compile("(?!)"))
        closer = penn.split_chunk(chunk, is_last)
    assert penn.split_chunk(chunk, is_last) == closer


def split_one_by_one(word: str) -> list[str]:
    if head := penn._FUSED.get(word.lower()):
        return [word[:head], word[head:]]
    if match := re.fullmatch(r"(?i)(.*[^\W_])(n't|'(?:s|m|d|re|ve|ll))", word):
        return [*split_one_by_one(match[1]), match[2]]
    return [word]


@given(st.lists(st.sampled_from([*penn._FUSED, "n't", "'s", "'RE", "’ve", "'", "n", "t", "a", "_", "ı", "ſ", "9"])))
def test_penn_splits_contractions_one_by_one_from_the_end(pieces: list[str]) -> None:
    word = "".join(pieces) or "a"
    assert [piece.text for piece in penn._split_word(word, 0)] == split_one_by_one(word.replace("’", "'"))


def test_penn_splits_any_number_of_contractions() -> None:
    assert tokenizer("penn").tokens("cannot" + "'sn’t" * 2500) == ["can", "not", *["'s", "n't"] * 2500]


def test_penn_leaves_text_in_treebank_form_as_it_is() -> None:
    line = "`` I ca n't , '' Mr. Doe 's U.S. -LRB- ex -RRB- dogs ' lawyers said -- at $ 5 ... or 1\\/2 % ."
    assert tokenizer("penn").tokens(line) == line.split()


def test_penn_leaves_treebank_sentences_as_they_are() -> None:
    changed = 0
    lines = shared("wsj-sample/wsj_0001-0199.mrg").read_text().split("\n(")
    for tree in lines:
        leaves = [node.split() for node in tree.replace(")", "(").split("(")]
        words = [leaf[1] for leaf in leaves if len(leaf) == 2 and leaf[0] != "-NONE-"]
        changed += tokenizer("penn").tokens(" ".join(words)) != words
    assert len(lines) > 1000
    assert changed <= 0.01 * len(lines)


def test_characters() -> None:
    assert "".join(tokenizer("characters").tokens("  ab  c\t<unk>_é \n")) == "ab__c_<unk>_é"
    assert "".join(tokenizer("characters", digits="N", lowercase=True).tokens("Ab 12 3c")) == "ab_N_Nc"


@pytest.mark.parametrize("kind", ["unicode", "penn", "none"])
def test_tokenized_splits_at_white_space_only(kind: str) -> None:
    line = " don't (x)  <UNK> <UNK>, a.\u3000b "
    assert tokenizer(kind, tokenized=True).tokens(line) == ["don't", "(x)", "<unk>", "<UNK>,", "a.", "b"]


def test_characters_cannot_be_split_already() -> None:
    with raises_config_error("leave out --tokenized", "characters"):
        tokenizer("characters", tokenized=True)


def test_normalisation_spares_special_tokens() -> None:
    normal = tokenizer("none", lowercase=True, digits="N")
    found = " ".join(normal.tokens("The 1,000 B52s <UNK> <unk> <s> </s> N"))
    assert found == "the N,N bNs <unk> <unk> <s> </s> N"
    assert normal.words("The 1,000 <UNK>") == ["The", "1,000", "<UNK>"]
    assert normal.normalize("The") == "the"


def test_numbers() -> None:
    normal = tokenizer("none", lowercase=True, digits="number")
    numbers = "1,000 3.14 1\\/2 1989-90 12:30 -5 '89 .5 7. N"
    assert normal.tokens(numbers) == ["N"] * 10
    assert normal.tokens("1980s 30-year B-2 1,a n -- .") == ["1980s", "30-year", "b-2", "1,a", "n", "--", "."]


LINES = st.text(alphabet=st.sampled_from("aBΣ19é .,'\"-\t\u3000()<unk>$"), max_size=40)


@given(line=LINES, kind=st.sampled_from(KINDS), lowercase=st.booleans(), digits=st.sampled_from(["keep", "N"]))
def test_words_and_tokens_correspond(line: str, kind: str, lowercase: bool, digits: str) -> None:
    tested = tokenizer(kind, lowercase=lowercase, digits=digits)
    words = tested.words(line)
    assert all(words)
    if kind != "characters":
        assert tested.tokens(line) == [tested.normalize(word) for word in words]
    if kind in ("unicode", "none"):
        assert "".join(words) == "".join(line.split())


@given(
    lines=st.lists(LINES, max_size=4),
    cuts=st.lists(st.integers(1, 6), min_size=1),
    kind=st.sampled_from(KINDS),
    tokenized=st.booleans(),
    lowercase=st.booleans(),
    digits=st.sampled_from(["keep", "N"]),
)
def test_cutting_lines_into_pieces_changes_no_token(
    lines: list[str], cuts: list[int], kind: str, tokenized: bool, lowercase: bool, digits: str
) -> None:
    assume(not tokenized or kind != "characters")
    tested = tokenizer(kind, tokenized=tokenized, lowercase=lowercase, digits=digits)
    pieces: list[tuple[int, str, bool]] = []
    for number, line in enumerate(lines, 1):
        position = 0
        while position < len(line):
            step = cuts[len(pieces) % len(cuts)]
            pieces.append((number, line[position : position + step], False))
            position += step
        pieces.append((number, "", True))
    found: list[list[str]] = [[]]
    for tokens, ends_line in tested.stream(pieces):
        found[-1] += tokens
        if ends_line:
            found.append([])
    assert found == [*[tested.tokens(line) for line in lines], []]


def test_long_chunks_are_split_like_short_ones() -> None:
    line = "don't," * 50
    assert tokenizer("penn").tokens(line) == ["do", "n't", ","] * 50


@given(st.lists(st.sampled_from([*penn.BRACKETS, *penn.BRACKETS.values(), "man"])), st.booleans())
def test_brackets_of_text_that_is_split_already_are_those_of_text_that_is_not(
    words: list[str], lowercase: bool
) -> None:
    config = TextConfig(tokenizer="penn", lowercase=lowercase)
    line = " ".join(words)
    assert Tokenizer(config, tokenized=True).tokens(line) == Tokenizer(config).tokens(line)


# Which characters a word stands for


REWRITTEN = set("\"'()[]{}“”„«»‘–—…’")
"""What is written in another way; `TEXTS` has much of it."""
TEXTS = st.lists(
    st.sampled_from(["don’t", "U.S.", "cannot", '"a', "(b)", "…", "<unk>x", " ", "\u3000", "e\u0301", "«c»"])
).map("".join)


@given(line=TEXTS | st.text(), kind=st.sampled_from(KINDS), tokenized=st.booleans())
def test_pieces_are_the_words_and_where_they_stand(line: str, kind: str, tokenized: bool) -> None:
    splitter = tokenizer(kind, tokenized=tokenized and kind != "characters")
    pieces = splitter.pieces(line)
    assert [piece.text for piece in pieces] == splitter.words(line)
    at = 0
    for piece in pieces:
        is_shared_period = piece.text == "." and piece.begin == at - 1  # the second one of `in the U.S. .`
        assert at <= piece.begin < piece.end <= len(line) or is_shared_period
        assert not line[at : piece.begin].strip(), "what is between two words is white space"
        source = line[piece.begin : piece.end]
        assert source == piece.text or source in REWRITTEN or "’" in source or kind == "characters"
        at = piece.end
    assert not line[at:].strip()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("I don't (really) know.", [(0, 1), (2, 4), (4, 7), (8, 9), (9, 15), (15, 16), (17, 21), (21, 22)]),
        ("  in the U.S.", [(2, 4), (5, 8), (9, 13), (12, 13)]),
        ("“No”, he said", [(0, 1), (1, 3), (3, 4), (4, 5), (6, 8), (9, 13)]),
    ],
)
def test_offsets_of_english(line: str, expected: list[tuple[int, int]]) -> None:
    assert [(p.begin, p.end) for p in tokenizer("penn").pieces(line)] == expected
