from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prpn.errors import InputError
from prpn.trees import Tree
from prpn.trees.brackets import Constituent
from prpn.trees.cleaning import Cleaning, Treebank, load_treebank, restrict
from prpn.trees.predicted import Predictions, distinct, read_predictions, read_side_by_side
from tests.trees.test_tree import trees
from tests.trees.treebank_files import write

GOLD = [
    "( (S (NP (DT The) (NN dog)) (, ,) (VP (VBZ barks) (-NONE- *T*-1)) (. .)))",
    "( (. ...))",
    "( (S (NP (PRP He)) (VP (VBZ is) (ADJP (RB very) (JJ old))) (. .)))",
    "( (FRAG (UH Yes) (. .)))",
]
SCORED = ["((The dog) barks)", "(He (is (very old)))", "(Yes)"]
SPOKEN = ["(The (dog (, (barks .))))", "(...)", "((He is) ((very old) .))", "(Yes .)"]


def gold(folder: Path, maximum: int | None = None) -> Treebank:
    return load_treebank([write(folder / "gold", "\n".join(GOLD))], Cleaning(maximum=maximum))


def read(folder: Path, predicted: list[str], maximum: int | None = None) -> Predictions:
    return read_predictions(write(folder / "mine", "\n".join(predicted)), gold(folder, maximum))


def brackets(predictions: Predictions) -> list[str]:
    return [tree.brackets() for tree in predictions.trees]


# One tree for each sentence


@pytest.mark.parametrize(
    "predicted",
    [
        [SCORED[0], "()", *SCORED[1:]],  # for all
        [SCORED[0], "", *SCORED[1:]],  # as `prpn parse` writes a sentence without words
        SCORED,  # for those with words
        ["(S (NP (DT The) (NN dog)) (VB barks))", "(S (PR He) (VP (VB is) (AP (AV very) (AJ old))))", "(S (UH Yes))"],
    ],
)
def test_predictions_for_all_sentences_or_for_those_with_words(tmp_path: Path, predicted: list[str]) -> None:
    found = read(tmp_path, predicted)
    assert [tree.words for tree in found.trees] == [s.tree.words for s in gold(tmp_path).counted()]
    assert [tree.spans() for tree in found.trees] == [[(0, 3), (0, 2)], [(0, 4), (1, 4), (2, 4)], []]
    assert found.reworded == 0


@pytest.mark.parametrize("predicted", [[SCORED[0], "()", *SCORED[1:]], SCORED, [SCORED[0], SCORED[2]]])
def test_sentences_that_are_too_long_are_left_out(tmp_path: Path, predicted: list[str]) -> None:
    assert brackets(read(tmp_path, predicted, maximum=3)) == [SCORED[0], SCORED[2]]
    assert brackets(read(tmp_path, predicted[-1:], maximum=1)) == SCORED[2:]


def test_a_tree_that_is_not_scored_may_have_any_words(tmp_path: Path) -> None:
    assert brackets(read(tmp_path, [SCORED[0], "(what (ever this))", SCORED[2]], maximum=3)) == [SCORED[0], SCORED[2]]


@pytest.mark.parametrize(
    "predicted",
    [
        SPOKEN,
        [SPOKEN[0], *SPOKEN[2:]],
        [
            "(S (D The) (S (N dog) (S (, ,) (S (V barks) (. .)))))",
            "(X (X (N He) (V is)) (X (X (A very) (A old)) (. .)))",
            "(X (U Yes) (. .))",
        ],
    ],
)
def test_what_is_not_scored_is_taken_out_of_predictions(tmp_path: Path, predicted: list[str]) -> None:
    found = read(tmp_path, predicted)
    assert [[c[:2] for c in tree.constituents] for tree in found.trees] == [
        [(0, 3), (1, 3), (2, 3)],
        [(0, 4), (0, 2), (2, 4)],
        [(0, 1)],
    ]
    assert [tree.words for tree in found.trees] == [s.tree.words for s in gold(tmp_path).counted()]
    assert found.reworded == 0


def test_some_may_be_over_what_is_spoken_and_some_over_what_is_scored(tmp_path: Path) -> None:
    found = read(tmp_path, [SCORED[0], SPOKEN[2], SCORED[2]])
    assert [tree.spans() for tree in found.trees] == [[(0, 3), (0, 2)], [(0, 4), (0, 2), (2, 4)], []]


def test_other_words_are_counted(tmp_path: Path) -> None:
    found = read(tmp_path, ["((the dog) barks)", SPOKEN[2], "(Yeah -RRB-)"])
    assert found.reworded == 2
    assert found.trees[0].words == ("the", "dog", "barks")
    assert found.trees[2].words == ("Yeah",)


def test_unary_chains_of_predictions_stay(tmp_path: Path) -> None:
    found = read(tmp_path, ["(((The dog)) barks)", "((He (is (very old))))", "((Yes))"])
    assert brackets(found) == ["(((The dog)) barks)", "((He (is (very old))))", "(Yes)"]


@pytest.mark.parametrize(
    ("predicted", "cause"),
    [
        (SCORED[:2], "mine: 2 trees, but {0}/gold has 4 trees, 3 with words, 3 of them scored; one for each"),
        ([*SCORED, *SCORED], "mine: 6 trees, but {0}/gold has 4 trees, 3 with words, 3 of them scored"),
        (["", "(a b)"], "mine: 1 trees, but {0}/gold has 4 trees"),
        (
            [SCORED[0], "(He is)", SCORED[2]],
            "mine:2: 2 words, but the gold tree at {0}/gold:3 has 4, 5 with what is not scored; predict the output of",
        ),
        (["(a (b (c (d (e (f g))))))", *SCORED[1:]], "mine:1: 7 words, but the gold tree at {0}/gold:1 has 3, 5 with"),
        ([SCORED[0], "(He (is)", SCORED[2]], "mine:2: the bracket opened here is never closed"),
        ([SCORED[0], "He is", SCORED[2]], "mine:2: 'He' is in no tree"),
        (["", " "], "mine: no tree in it"),
    ],
)
def test_predictions_that_do_not_fit(tmp_path: Path, predicted: list[str], cause: str) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, predicted)
    assert str(error.value).startswith(f"{tmp_path}/{cause.format(tmp_path)}")


def test_a_sentence_without_punctuation_has_one_length(tmp_path: Path) -> None:
    treebank = load_treebank([write(tmp_path / "gold", "(S (NN a) (NN b))")])
    with pytest.raises(InputError, match=r"mine:1: 3 words, but the gold tree at \S+/gold:1 has 2; predict the output"):
        read_predictions(write(tmp_path / "mine", "(a (b c))"), treebank)


def test_counts_are_told_when_sentences_are_left_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"1 trees, but \S+gold has 4 trees, 3 with words, 2 of them scored"):
        read(tmp_path, SCORED[:1], maximum=3)


def test_predictions_of_skipped_trees_are_not_expected(tmp_path: Path) -> None:
    path = write(tmp_path / "gold", "\n".join([*GOLD[:1], GOLD[2][:-1], *GOLD[2:]]))
    treebank = load_treebank([path], skip_broken=True)
    assert len(treebank.broken) == 1
    assert brackets(read_predictions(write(tmp_path / "mine", "\n".join(SCORED)), treebank)) == SCORED


@given(trees(), st.data())
def test_distinct_keeps_one_constituent_for_each_span(tree: Tree, data: st.DataObject) -> None:
    left = restrict(tree, data.draw(st.lists(st.booleans(), min_size=len(tree), max_size=len(tree))))
    found = distinct(left)
    spans = [c[:2] for c in left.constituents]
    assert found.words == left.words
    assert [c[:2] for c in found.constituents] == list(dict.fromkeys(spans))


def test_distinct_keeps_the_outermost_label() -> None:
    tree = Tree(("a", "b"), (Constituent(0, 2, "S"), Constituent(0, 2, "NP"), Constituent(0, 1, "A")))
    assert distinct(tree).brackets() == "(S (A a) b)"


# Side by side


def test_files_are_read_line_by_line(tmp_path: Path) -> None:
    one = write(tmp_path / "1", "(a (b c))\n\n(d)\n(e f)\n")
    two = write(tmp_path / "2", "((a b) c)\r\n  \r\n(d)\r\n(e f)")
    three = write(tmp_path / "3", "(X (A a) (X (B b) (C c)))\n()\n(D d)\n(X (E e) (F f))\n")
    found = list(read_side_by_side([one, str(two), three]))
    assert [[tree.words for tree in row] for row in found] == [[tuple(words)] * 3 for words in ["abc", "", "d", "ef"]]
    assert [tree.spans() for tree in found[0]] == [[(0, 3), (1, 3)], [(0, 3), (0, 2)], [(0, 3), (1, 3)]]
    assert [tree.brackets() for tree in found[1]] == ["()"] * 3
    assert [len(row) for row in read_side_by_side([one])] == [1] * 4


def test_a_line_is_a_tree_whatever_comes_later(tmp_path: Path) -> None:
    one, two = write(tmp_path / "1", "(a b)\n(c d)\n(e"), write(tmp_path / "2", "(a b)\n(c d)\n(e f)")
    rows = read_side_by_side([one, two])
    assert [next(rows)[0].words for _ in range(2)] == [("a", "b"), ("c", "d")]
    with pytest.raises(InputError, match="1:3: the bracket opened here is never closed"):
        next(rows)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("(a b)\n(c d)\n", "(a b)\n", "2: ends before {0}/1:2; give files of the same sentences"),
        ("(a b)\n", "(a b)\n\n", "1: ends before {0}/2:2"),
        ("", "(a b)", "1: ends before {0}/2:1"),
        ("(a b)\n(c d)", "(a b)\n(c e)", "2:2: other words than {0}/1:2; give files of the same sentences"),
        ("(a b)\n(c d)", "(a b)\n\n(c d)", "2:2: other words than {0}/1:2"),
        ("(a b)", "(a (b c))", "2:1: other words than {0}/1:1"),
        ("(a b)\n(a b) (c d)", "(a b)\n(a b)", "1:2: '(' stands after the tree"),
        ("(a b)\na b", "(a b)\n(a b)", "1:2: 'a' stands before the tree; a tree looks like"),
        ("(a b)\n(a ())", "(a b)\n(a b)", "1:2: the bracket opened here has no words; remove it"),
        ("(a b)\n(a b", "(a b)\n(a b)", "1:2: the bracket opened here is never closed"),
        ("(a b)", "(a b)\n(a \udce9)", "2:2: not UTF-8 (byte 0xe9)"),
        ("(a b)", "(a \0)", "2:1: not text (it holds a NUL byte)"),
    ],
)
def test_files_that_do_not_go_together(tmp_path: Path, first: str, second: str, message: str) -> None:
    paths = [write(tmp_path / n, text.encode(errors="surrogateescape")) for n, text in [("1", first), ("2", second)]]
    with pytest.raises(InputError) as error:
        list(read_side_by_side(paths))
    assert str(error.value).startswith(f"{tmp_path}/{message.format(tmp_path)}")


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: no such file"):
        list(read_side_by_side([write(tmp_path / "1", "(a b)"), tmp_path / "nowhere"]))
    with pytest.raises(InputError, match="this is a folder"):
        list(read_side_by_side([tmp_path]))


def test_nothing_side_by_side(tmp_path: Path) -> None:
    assert list(read_side_by_side([])) == []
    assert list(read_side_by_side([write(tmp_path / "1", "")] * 2)) == []


@given(st.lists(trees().filter(lambda tree: "\0" not in "".join(tree.words)), max_size=5))
def test_drawn_files_side_by_side(tmp_path_factory: pytest.TempPathFactory, drawn: list[Tree]) -> None:
    folder = tmp_path_factory.mktemp("side_by_side")
    flat = [Tree(tree.words, (Constituent(0, len(tree)),)) for tree in drawn]
    anchor = "(one ((two three) four))\n"  # no tree with labels
    paths = [
        write(folder / name, anchor * 6 + "".join(f"{tree.brackets()}\n" for tree in column))
        for name, column in [("1", drawn), ("2", flat)]
    ]
    rows = list(read_side_by_side(paths))[6:]
    assert [row[1] for row in rows] == flat
    assert [row[0].spans() for row in rows] == [tree.spans() for tree in drawn]
