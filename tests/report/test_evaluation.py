"""What an evaluation shows to a reader."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from prpn.report.console import PLAIN_WIDTH
from prpn.report.evaluation import LABELS, print_evaluation
from prpn.trees.evaluation import Evaluation, System, evaluate, evaluate_parsers
from prpn.trees.protocols import PROTOCOLS
from prpn.trees.tree import Tree
from tests.trees.small_treebank import ALL, BASELINES, BROKEN, golds_of, parser, treebank

TWENTY = "a-name-of-20-letters"
TITLES = ["F1 and its 95 %", "under klein", "recall by gold label", "difference of F1", "all models", "shape of the"]


def printed(result: Evaluation, width: int | None = None) -> list[str]:
    """The lines as they go to a file, or to a terminal of some width."""
    out = StringIO()
    print_evaluation(result, Console(file=out, width=width, force_terminal=width is not None, color_system=None))
    return [line.rstrip() for line in out.getvalue().split("\n")]


def table(lines: list[str], title: str) -> list[list[str]]:
    """The rows of a table as words, from its headings to the empty line behind it."""
    begin = next(i for i, line in enumerate(lines) if line.startswith(title)) + 2
    return [line.split() for line in lines[begin : lines.index("", begin)]]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    models = {TWENTY: parser(1), "flat": parser(2, constant=0.0)}
    loaded = treebank(tmp_path_factory.mktemp("report"), BROKEN, skip_broken=True)
    return evaluate_parsers(loaded, models, ALL, with_average=True)


def test_every_system_by_every_protocol(result: Evaluation) -> None:
    headings, _, *rows = table(printed(result), "F1 and its 95 %")
    assert headings == ["system", *PROTOCOLS]
    assert [name for name, *_ in rows[::2]] == [*BASELINES, TWENTY, "flat", "average"]
    for (name, *f1), interval in zip(rows[::2], rows[1::2], strict=True):
        assert f1 == [f"{figure.f1:.2f}" for figure in result.systems[name].values()]
        assert interval == [f"{figure.low:.1f}–{figure.high:.1f}" for figure in result.systems[name].values()]


def test_by_number_of_words(result: Evaluation) -> None:
    headings, _, sentences, *rows = table(printed(result), "under klein")
    assert headings == ["system", "precision", "recall", "1-10", "11-20"]
    assert sentences == ["sentences", "8", "1"]
    for name, precision, recall, *f1 in rows:
        klein = result.systems[name]["klein"]
        assert (precision, recall) == (f"{klein.precision:.2f}", f"{klein.recall:.2f}")
        assert f1 == [f"{value:.2f}" for value in result.by_length[name]["klein"].values()]
    assert [name for name, *_ in rows] == list(result.systems)


def test_recall_by_label(result: Evaluation) -> None:
    headings, _, constituents, *rows = table(printed(result), "recall by gold label")
    assert headings == ["system", *result.labels]
    assert constituents == ["constituents", *map(str, result.labels.values())]
    for name, *recall in rows:
        assert recall == [f"{result.by_label[name][label]:.1f}" for label in result.labels]
    assert [name for name, *_ in rows] == list(result.systems)


def test_differences_and_seeds(result: Evaluation) -> None:
    headings, _, *rows = table(printed(result), "difference of F1")
    assert headings == ["system", "against", *PROTOCOLS]
    pairs = [(name, other) for name, others in result.differences.items() for other in others]
    assert [(row[0], row[1]) for row in rows[::2]] == pairs
    for (name, other, *gaps), interval in zip(rows[::2], rows[1::2], strict=True):
        found = result.differences[name][other].values()
        assert gaps == [f"{gap.difference:+.2f}" for gap in found]
        assert interval == " ".join(f"{gap.low:+.1f}, {gap.high:+.1f}" for gap in found).split()
    title = f"all models: they agree with each other by {result.self_f1:.1f} F1"
    headings, _, *rows = table(printed(result), title)
    assert headings == list(PROTOCOLS)
    assert [row[0] for row in rows] == ["mean", "spread", "best"]
    assert rows[0][1:] == [f"{seeds.mean:.2f}" for seeds in result.seeds.values()]


def test_shape_of_the_trees(result: Evaluation) -> None:
    *_, one, flat = table(printed(result), "shape of the trees")
    found = result.diagnoses["flat"]
    agreement = f"{result.agreement['flat']:.1f}"
    assert flat == ["flat", "0.0", "100.0", agreement, f"{found.mean_depth:.1f}", "100.0", "0.0"]
    assert one[0] == TWENTY


def test_what_was_scored(result: Evaluation) -> None:
    lines = printed(result)
    assert "own.trees: 9 sentences, 46 words" in " ".join(lines[:3])
    assert "words: leaves with a Penn word tag; builder: paper" in lines
    assert "2 broken trees skipped" in lines


def test_other_ways_to_clean(tmp_path: Path) -> None:
    lines = printed(evaluate(treebank(tmp_path, "(the (old man))\n(a b c)\n", maximum=3), [], ALL, "unbiased"))
    assert "2 sentences of at most 3 words, 6 words" in " ".join(lines[:3])
    assert "words: leaves that are not only punctuation or symbols; builder: unbiased" in lines
    assert not any("broken" in line or "recall by gold label" in line for line in lines)


def test_a_collapse_is_said_in_plain_words(result: Evaluation) -> None:
    assert result.diagnoses["flat"].collapsed
    warnings = [line for line in printed(result) if "collapsed" in line]
    assert "flat has collapsed: its trees hardly depend on the words." in warnings
    assert len(warnings) == sum(found.collapsed for found in result.diagnoses.values())


def test_no_warning_without_a_collapse(tmp_path: Path) -> None:
    result = evaluate_parsers(treebank(tmp_path), {"one": parser(4)}, ALL)
    assert not result.diagnoses["one"].collapsed
    assert not any("collapsed" in line for line in printed(result))


def test_baselines_alone(tmp_path: Path) -> None:
    lines = printed(evaluate(treebank(tmp_path), [], ALL, "paper"))
    shown = [title for title in TITLES if any(line.startswith(title) for line in lines)]
    assert shown == TITLES[:3]


def test_lengths_that_a_protocol_does_not_score(tmp_path: Path) -> None:
    long = "( (S " + " ".join(["(NN man)"] * 11) + ") )"
    loaded = treebank(tmp_path, "( (NP (NN dog)) )\n" + long)
    lines = printed(evaluate(loaded, [], [PROTOCOLS["kim"]], "paper"))
    assert table(lines, "under kim")[3][-2:] == ["–", "0.00"]


def test_only_the_most_frequent_labels(tmp_path: Path) -> None:
    labels = [f"L{i}" for i in range(LABELS + 3)]
    text = "\n".join("( (S " + f"({label} (NN a) (NN b)) " * (20 - i) + ") )" for i, label in enumerate(labels))
    result = evaluate(treebank(tmp_path, text), [], ALL, "paper")
    assert table(printed(result), "recall by gold label")[0] == ["system", *labels[:LABELS]]
    assert len(result.labels) == LABELS + 3


def test_nothing_is_cut_off_in_a_file(tmp_path: Path) -> None:
    """With the longest names and the widest numbers there can be."""
    loaded = treebank(tmp_path, "\n".join(["( (S (NP (NN a) (NN b)) (NN c)) )"] * 5))
    golds = golds_of(loaded)
    wrong = [Tree.from_brackets("(a (b c))")] * len(golds)
    names = [TWENTY, TWENTY[::-1], "another-of-20-letter"]
    systems = [System(name, [trees]) for name, trees in zip(names, [golds, wrong, golds], strict=True)]
    lines = printed(evaluate(loaded, systems, ALL, "paper"))
    assert all(cell_len(line) <= PLAIN_WIDTH for line in lines)
    text = "\n".join(lines)
    assert "…" not in text
    assert [text.count(name) for name in names] == [3 + 2 + 2, 3 + 3 + 1, 3 + 4], "three tables, then differences"
    assert text.count("+100.00") == 3 * 3, "three protocols leave the whole sentence out"


@pytest.mark.parametrize("width", [200, 120, 100, 80, 60])
def test_nothing_is_cut_off_in_a_terminal(result: Evaluation, width: int) -> None:
    lines = printed(result, width)
    assert all(cell_len(line) <= width for line in lines)
    assert not any("…" in line for line in lines)


@pytest.mark.parametrize("name", ["run[bold]", "[red]x[/red]", "a:dog:", "[1]", "back\\", "世界"])
def test_names_are_shown_as_they_are(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "[dim]:cat:"
    folder.mkdir()
    loaded = treebank(folder)
    result = evaluate(loaded, [System(name, [golds_of(loaded)])], ALL, "paper")
    lines = printed(result)
    for title in TITLES[:4]:
        assert any(name in row for row in table(lines, title)), title
    assert "[dim]:cat:" in "".join(lines[:3])


def test_standard_output(result: Evaluation, capsys: pytest.CaptureFixture[str]) -> None:
    print_evaluation(result)
    assert [line.rstrip() for line in capsys.readouterr().out.split("\n")] == printed(result)
