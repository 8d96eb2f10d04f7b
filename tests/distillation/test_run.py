"""Distillation from end to end: distances of several become lessons, lessons a parser that agrees with the crowd."""

from __future__ import annotations

import json
import math
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch

from prpn.api.model import load
from prpn.distillation import Lessons, distill, mark_lessons, run, tree_lessons
from prpn.distillation.run import StudentConfig
from prpn.distillation.student import mark_loss
from prpn.errors import ConfigError, InputError
from prpn.parsing.parser import Parser
from prpn.training.lock import only_run
from prpn.trees import Tree, build
from prpn.trees.cleaning import restrict
from tests.kernels.parsers import random_parser
from tests.reference.trees import at_marks_first, brackets
from tests.training.tiny import sentences

STUDENT = StudentConfig(channels=32, lookback=2, lookahead=2, dropout=0.0, epochs=25, learning_rate=0.01)


@pytest.fixture
def text(tmp_path: Path) -> str:
    path = tmp_path / "text.txt"
    path.write_text(sentences(400) + "\n" + "a " * 200 + "\n")
    return str(path)


def test_lessons_are_the_heights_of_mean_distances_and_expected_marks(text: str) -> None:
    parsers, marks = [random_parser(seed, scale=seed) for seed in (1, 2, 3)], random_parser(4)
    lessons = tree_lessons([text], parsers, marks.network, "paper", limit=30)
    assert len(lessons.ends) == 30
    lines = [line.split() for line in Path(text).read_text().splitlines()]
    kept = [words for words in lines if 3 <= len(words) <= 100][:30]
    begin = 0
    for number, (words, end) in enumerate(zip(kept, lessons.ends.tolist(), strict=True)):
        found = [parser.scores([words])[0] / parser.scale for parser in parsers]
        together = [(a + b + c) / 3 for a, b, c in zip(*found, strict=True)]
        odds = iter(marks.scores([[word for word in words if word not in ",."]])[0].tolist())
        expected = [0.0 if word in ",." else 4 / (1 + math.exp(-next(odds))) for word in words]
        expected[next(place for place, word in enumerate(words) if word not in ",.")] = 0.0  # not taught
        higher_one_of_two = [together[0], *map(max, together[:-1], together[1:])]  # as `paper` splits
        scores = [one + other for one, other in zip(higher_one_of_two, expected, strict=True)]
        tree = Tree.from_brackets(brackets(at_marks_first(words, scores, ",.")))
        if number % 2:
            tree = restrict(tree, [word not in (".", ",") for word in words])
        assert lessons.ids[begin:end].tolist() == parsers[0].vocabulary.encode(tree.words)
        built = build(tree.words, lessons.targets[begin:end].astype(float), "unbiased")
        assert set(built.spans()) == {span for span in tree.spans() if span[1] - span[0] > 1}
        begin = end
    first, second = lessons.split(0.1)
    assert (len(first.ends), len(second.ends)) == (27, 3)
    assert np.array_equal(np.concatenate([first.targets, second.targets]), lessons.targets)
    assert second.ends[-1] == len(second.ids)


def test_marks_are_taken_out_and_taught(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text('the old man , " can " do % , .\nno no\n, . , .\na b c\n')
    parser = random_parser(1)
    lessons = mark_lessons([str(tmp_path / "text.txt")], parser)
    assert lessons.ids.tolist() == parser.vocabulary.encode(["the", "old", "man", "can", "do", "%", "a", "b", "c"])
    assert lessons.targets.tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 0]
    assert lessons.ends.tolist() == [6, 9]


def test_the_loss_of_marks_leaves_out_first_words_and_padding() -> None:
    scores, marks = torch.tensor([[9.0, 1.0, -2.0, 9.0]]), torch.tensor([[0.0, 1.0, 0.0, 0.0]])
    mask = torch.tensor([[True, True, True, False]])
    expected = (math.log1p(math.exp(-1)) + math.log1p(math.exp(-2))) / 2
    assert mark_loss(scores, marks, mask).item() == pytest.approx(expected)


def test_where_marks_stand_can_be_learned(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the old man can do\nthe old , man do can\n" * 200)
    parser = random_parser(1)
    result = distill([parser], [str(tmp_path / "text.txt")], tmp_path / "out", STUDENT, quiet=True)
    assert result["mark_losses"][-1] < 0.05 < result["mark_losses"][0]  # what follows tells them apart


def test_a_student_finds_the_trees_of_the_crowd(text: str, tmp_path: Path) -> None:
    parsers, folder = [random_parser(seed, lookback=1) for seed in (1, 2, 3)], tmp_path / "crowd"
    result = distill(parsers, [text], folder, STUDENT, builder="unbiased", quiet=True)
    assert result["losses"][-1] < result["losses"][0] / 2
    assert result["agreement"] > 0.8
    record = json.loads((folder / "record.json").read_text())
    assert record["student"]["lookahead"] == 2
    student = Parser.load(folder)
    assert student.builder == "unbiased"
    words = ["the", "old", "man", "do", "not", "can"]
    alone, together = student.scores([words])[0], student.scores([["a"], words, ["b", "a"]])[1]
    np.testing.assert_allclose(alone, together, rtol=1e-6)
    with pytest.raises(InputError, match="already holds a model"):
        distill(parsers, [text], folder, STUDENT, quiet=True)
    with pytest.raises(InputError, match="without a language model"):
        load(folder).perplexity("the man")


def test_a_crowd_that_leans_has_a_student_that_leans(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Lessons] = []
    monkeypatch.setattr(run, "tree_lessons", lambda *given, **how: made.append(tree_lessons(*given, **how)) or made[0])
    parsers, folder = [random_parser(seed, lookback=1) for seed in (1, 2)], tmp_path / "crowd"
    for parser in parsers:
        parser.scale = 2.0
    how = StudentConfig(channels=32, lookback=2, lookahead=2, dropout=0.0, epochs=15, learning_rate=0.01, held_out=0.2)
    result = distill(parsers, [text], folder, how, builder="right-leaning", quiet=True)
    student = Parser.load(folder)
    assert (student.builder, student.scale) == ("right-leaning", 1.0)
    lessons = made[0].split(how.held_out)[1]
    wanted, found, begin = [], [], 0
    for end in lessons.ends.tolist():
        words = ["x"] * (end - begin)
        (scores,) = student.scores_of_ids(lessons.ids[begin:end], [len(words)])
        wanted.append(set(build(words, lessons.targets[begin:end].astype(float), "unbiased").spans()))
        found.append(set(build(words, scores, "right-leaning").spans()))
        begin = end
    share = sum(map(len, map(set.__and__, wanted, found))) / sum(map(len, wanted))
    assert share == pytest.approx(result["agreement"], abs=0.01)
    assert share > 0.8
    assert f"{parsers[0].place} and {parsers[1].place}" in (folder / "README.md").read_text()


def test_a_student_that_does_not_lean_knows_its_units(text: str, tmp_path: Path) -> None:
    how = StudentConfig(channels=8, epochs=1, held_out=0.5)
    distill([random_parser()], [text], tmp_path / "out", how, builder="unbiased", quiet=True)
    student = Parser.load(tmp_path / "out")
    lines = [student.words(line) for line in Path(text).read_text().splitlines()]
    assert student.scale == pytest.approx(np.concatenate([s[1:] for s in student.scores(lines)]).std(), rel=0.2)


def test_a_model_is_not_overwritten(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("mine")
    with pytest.raises(InputError, match="already holds a model"):
        distill([random_parser()], [text], tmp_path, quiet=True)
    assert [path.name for path in tmp_path.iterdir() if path.name != "text.txt"] == ["config.json"]


def test_the_folder_is_looked_at_first(text: str, tmp_path: Path) -> None:
    how = StudentConfig(channels=4, epochs=1, sentences=50)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "README.md").write_text("mine")
    for folder, cause in (("mine", "holds other files"), ("text.txt", "cannot be made"), ("text.txt/x", "cannot be")):
        with pytest.raises(InputError, match=cause), patch.object(run, "mark_lessons", side_effect=AssertionError):
            distill([random_parser()], [text], tmp_path / folder, how, quiet=True)
    (tmp_path / "busy").mkdir()
    with only_run(tmp_path / "busy"), pytest.raises(InputError, match="another run is writing here"):
        distill([random_parser()], [text], tmp_path / "busy", how, quiet=True)
    (tmp_path / "killed").mkdir()
    for name in ("vocabulary.json", "parser.safetensors", ".record.json.1.tmp"):
        (tmp_path / "killed" / name).write_text("left behind")
    distill([random_parser()], [text], tmp_path / "killed", how, quiet=True)
    assert Parser.load(tmp_path / "killed").parse_many(["the man"])


def test_the_same_seed_makes_the_same_student(text: str, tmp_path: Path) -> None:
    how = StudentConfig(channels=4, epochs=1, sentences=50)
    for name in ("one", "two"):
        distill([random_parser()], [text], tmp_path / name, how, quiet=True)
    one, two = ((tmp_path / name / "parser.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two


def test_what_cannot_be_learned_from(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("the man\n\n")
    with pytest.raises(InputError, match="too few sentences"):
        distill([random_parser()], [str(tmp_path / "short.txt")], tmp_path / "out", quiet=True)
    with pytest.raises(ConfigError, match="nobody to learn from"):
        distill([], [], tmp_path / "out", quiet=True)
    with pytest.raises(InputError, match="read twice"):
        distill([random_parser()], ["-"], tmp_path / "out", quiet=True)
    with pytest.raises(InputError, match="no such file"):
        distill([random_parser()], [str(tmp_path / "nowhere.txt")], tmp_path / "out", quiet=True)
    with pytest.raises(InputError, match="was not measured"):
        distill([random_parser(scale=0)], [str(tmp_path / "short.txt")], tmp_path / "out", quiet=True)
    with pytest.raises(ConfigError, match="sentences = -1"):
        StudentConfig(sentences=-1)
    with pytest.raises(ConfigError, match="lookahead = -1"):
        StudentConfig(lookahead=-1)
