import re
import time
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from prpn.trees import Tree
from prpn.trees.brackets import VISIBLE_SPACES, Constituent
from tests.trees.labelled import labelled_trees
from tests.trees.test_tree import deep_brackets, trees

SVG = "{http://www.w3.org/2000/svg}"
LABELS = st.sampled_from(["S", "NP", "NP-SBJ-1", "a very long label <&>"])
BAR = re.compile(r"M(\d+) (\d+)V\d+Q\d+ (\d+) [^M]*Q(\d+) [^M]*V(\d+)")  # left and its end, bar, right and its end


class Picture:
    """What a browser makes of an SVG: texts, as (middle, baseline, text), and lines."""

    def __init__(self, tree: Tree) -> None:
        self.root = ET.fromstring(tree.svg())
        self.width, self.height = int(self.root.attrib["width"]), int(self.root.attrib["height"])
        self.words, self.labels, self.tags = self.texts("16"), self.texts("13"), self.texts("12")
        self.paths = [path.attrib["d"] for path in self.root.iter(f"{SVG}path")]

    def texts(self, size: str) -> list[tuple[int, int, str]]:
        found = self.root.findall(f"{SVG}g[@font-size='{size}']/{SVG}text")
        return [(int(text.attrib["x"]), int(text.attrib["y"]), text.text or "") for text in found]

    def bars(self) -> list[tuple[int, int, int]]:
        """All horizontal lines, as (left, right, y)."""
        return [(int(m[1]), int(m[4]), int(m[3])) for path in self.paths if (m := BAR.match(path))]

    def lower_ends(self) -> list[tuple[int, int]]:
        """Where lines end at children: vertical ones at their first point, and at the last of a bar."""
        found = []
        for path in self.paths:
            bar = BAR.match(path)
            starts = [(int(x), int(y)) for x, y in re.findall(r"M(\d+) (\d+)", path)]
            found += [start for start in starts if not bar or start[1] > int(bar[3])]  # a stem starts on the bar
            found += [(int(bar[4]), int(bar[5]))] if bar else []
        return found


def allowed(text: str) -> str:
    return "".join(letter for letter in text if letter >= " " and letter not in "\ufffe\uffff")


@given(trees())
def test_every_word_is_written_and_every_span_has_a_line(tree: Tree) -> None:
    picture = Picture(tree)
    assert [text for *_, text in picture.words] == [allowed(word) for word in tree.words]
    assert picture.root.findtext(f"{SVG}title") == allowed(tree.brackets())
    assert len(picture.paths) == len(set(tree.spans()))
    assert picture.labels == picture.tags == []


@given(labelled_trees(LABELS))
def test_every_label_is_written(tree: Tree) -> None:
    picture = Picture(tree)
    written = [text for *_, text in picture.labels + picture.tags]
    assert sorted(written) == sorted(c.label.translate(VISIBLE_SPACES) for c in tree.constituents if c.label)
    innermost = {c.start: c.label for c in tree.constituents if c.end == c.start + 1 and c.label}
    assert len(picture.tags) == len(innermost)
    assert {x for x, *_ in picture.tags} == {picture.words[i][0] for i in innermost}


@given(labelled_trees(LABELS))
def test_texts_do_not_overlap(tree: Tree) -> None:
    picture = Picture(tree)
    for texts, cell in ((picture.words, 8), (picture.labels, 6), (picture.tags, 6)):
        for row in {y for _, y, _ in texts}:
            halves = sorted((x, cell * cell_len(text) / 2) for x, y, text in texts if y == row)
            edges = [edge for x, half in halves for edge in (x - half, x + half)]
            assert edges == sorted(edges)
            assert edges[0] > 0
            assert edges[-1] < picture.width
            assert 0 < row < picture.height
    assert len({y for _, y, _ in picture.words}) == 1


@given(labelled_trees(LABELS))
def test_lines_join_every_node_with_its_parent(tree: Tree) -> None:
    picture = Picture(tree)
    tagged = {x for x, *_ in picture.tags}
    texts = {(x, y - 17) for x, y, _ in picture.words if x not in tagged}
    texts |= {(x, y - 13) for x, y, _ in picture.labels + picture.tags}
    ends = picture.lower_ends()
    assert len(set(ends)) == len(ends)
    root_is_text = len(tree) == 1 or any(c.label for c in tree.constituents if c[:2] == (0, len(tree)))
    assert len(texts - set(ends)) == root_is_text
    for x, y in set(ends) - texts:  # these are constituents without label
        assert [left < x < right for left, right, bar in picture.bars() if bar == y].count(True) == 1


def test_a_treebank_tree() -> None:
    parts = [(0, 3, "S"), (0, 1, "NP"), (0, 1, "PRP"), (1, 3, "VP"), (1, 2, "VBP"), (2, 3, "NP"), (2, 3, "NNS")]
    picture = Picture(Tree(("We", "like", "trees"), tuple(Constituent(*part) for part in parts)))
    assert [text for *_, text in picture.tags] == ["PRP", "VBP", "NNS"]
    assert [x for x, *_ in picture.tags] == [x for x, *_ in picture.words]
    assert [text for _, _, text in sorted(picture.labels, key=lambda text: text[1])] == ["S", "VP", "NP", "NP"]
    assert len(picture.paths) == 4
    assert picture.root.attrib["viewBox"] == f"0 0 {picture.width} {picture.height}"
    assert picture.root.findtext(f"{SVG}title") == "(S (NP (PRP We)) (VP (VBP like) (NP (NNS trees))))"


def test_it_takes_the_colour_of_the_page() -> None:
    colours = re.findall(r'(?:fill|stroke)="([^"]*)"', Tree.from_brackets("(a b)").svg())
    assert colours == ["currentColor", "none", "currentColor"]


def test_only_labels_and_the_root_have_a_stem() -> None:
    lower, upper = Picture(Tree.from_brackets("(a (b c))")).paths
    assert lower.count("M") == 1
    assert upper.count("M") == 2


@pytest.mark.parametrize(("text", "words"), [("()", 0), ("(word)", 1), ("((word))", 1)])
def test_few_words(text: str, words: int) -> None:
    picture = Picture(Tree.from_brackets(text))
    assert len(picture.words) == words
    assert picture.paths == []
    assert picture.width > 0
    assert picture.height > 0


def test_one_word_with_a_tag() -> None:
    picture = Picture(Tree(("word",), (Constituent(0, 1, "NN"),)))
    assert [text for *_, text in picture.words + picture.tags] == ["word", "NN"]
    assert picture.paths == []


def test_characters_that_xml_forbids_are_left_out() -> None:
    tree = Tree(("a\x00<b>&", "\ud800", " \uffff"), (Constituent(0, 3, "N\x1bP"),))
    picture = Picture(tree)
    assert [text for *_, text in picture.words] == ["a<b>&", "", "▁"]
    assert [text for *_, text in picture.labels] == ["NP"]
    tree.svg().encode()


def test_wide_characters_have_more_room() -> None:
    def first_gap(text: str) -> int:
        (left, *_), (right, *_) = Picture(Tree.from_brackets(text)).words
        return right - left

    assert first_gap("(蘋果汁 蘋果汁)") > first_gap("(abc abc)") + 20
    assert first_gap("(MWM MWM)") > first_gap("(abc abc)") + 15


@pytest.mark.parametrize(
    ("text", "rightwards"), [("(a (b שלום))", True), ("(« (שלום עולם) abc)", False), ("(1 2)", True)]
)
def test_right_to_left_scripts_run_from_the_right(text: str, rightwards: bool) -> None:
    columns = [x for x, *_ in Picture(Tree.from_brackets(text)).words]
    assert columns == sorted(columns, reverse=not rightwards)
    assert f'direction="{"ltr" if rightwards else "rtl"}"' in Tree.from_brackets(text).svg()


@pytest.mark.parametrize(
    "text",
    [deep_brackets(50_000, "left"), deep_brackets(50_000, "right"), f"({'w ' * 100_000})"],
    ids=["left", "right", "flat"],
)
def test_size_is_no_limit(text: str) -> None:
    begun = time.process_time()
    tree = Tree.from_brackets(text)
    drawn = tree.svg()
    assert time.process_time() - begun < 10
    assert drawn.count("<text ") == 100_000
    assert drawn.count("<path ") == len(tree.spans())
