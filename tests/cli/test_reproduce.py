"""`prpn reproduce`: the listing, and an experiment of a blink that is run, recorded and run again."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from prpn.api.model import load
from prpn.config import Builder
from prpn.report.study import study_table
from prpn.reproduction import package, recorded
from prpn.reproduction.experiments import load_experiments
from prpn.reproduction.paper import load_tables
from prpn.reproduction.recorded import read_recorded
from prpn.text.files import first_sentences
from prpn.trees.from_distances import LEANING
from prpn.trees.judgement import judge
from tests.cli.command import Command, assert_refused
from tests.training.tiny import toml, write_text

EXPERIMENTS = """
[files.training]
names = ["small.train.txt"]
what = "a text"
source = "made by this test"
[files.validation]
names = ["small.valid.txt"]
what = "another text"
source = "made by this test"
[files.both]
names = ["small.train.txt"]
what = "a text and another"
source = "made by this test"
then = ["validation"]
[files.half]
names = ["small.trees", "small_?.mrg"]
half = "even"
what = "every second tree"
source = "made by this test"
[files.words]
names = ["small.trees", "small_?.mrg"]
words = true
what = "their words"
source = "made by this test"
[files.treebank]
names = ["small.trees", "small_?.mrg"]
what = "trees"
source = "made by this test"

[experiments.small]
sentence = "A model of a blink."
table = "wsj10"
budget = "two steps"
seeds = [1, 2]
records = ["reproduced/small"]
files = {{ training = "training", validation = "validation", test = "validation", treebank = "treebank" }}
figures = [
  {{ system = "model", measure = "perplexity", on = "validation", spread = 0.01 }},
  {{ system = "model", measure = "perplexity", on = "test", spread = 0.01 }},
  {{ system = "model", measure = "perplexity", on = "test", cache = true, spread = 0.01 }},
  {{ system = "model", measure = "perplexity", on = "validation", cache = true, spread = 0.01 }},
  {{ system = "3-gram", measure = "bits_per_character", on = "test" }},
  {{ row = "PRPN", system = "model", measure = "f1", on = "treebank", protocol = "released", spread = 0.1 }},
  {{ system = "model", measure = "f1", on = "treebank", protocol = "kim", builder = "unbiased", spread = 0.1 }},
  {{ system = "right", measure = "f1", on = "treebank", protocol = "klein", maximum_words = 5 }},
]
[experiments.small.systems]
model = {{ recipe = "{recipe}", set = ["training.steps=2"] }}
3-gram = {{ recipe = "{recipe}", order = 3, sentences = true, cache = true }}

[experiments.crowd]
sentence = "Two teachers, as they are and without punctuation, and a student of the former."
budget = "a step"
base = "teacher"
seeds = [1, 2]
records = ["reproduced/crowd"]
files = {{ training = "both", half = "half" }}
figures = [
  {{ system = "*", measure = "f1", on = "half", protocol = "kim", spread = 0.1 }},
  {{ system = "student", measure = "f1", on = "half", protocol = "kim", builder = "unbiased", spread = 0.1 }},
]
[experiments.crowd.systems]
teacher = {{ recipe = "{recipe}", set = ["training.steps=2"] }}
bare = {{ recipe = "{recipe}", set = ["training.steps=2"], punctuation = false }}
student = {{ taught_by = ["teacher"], best = 1, student = {{ channels = 4, epochs = 1 }} }}

[experiments.words]
sentence = "A model of the words of trees, and its student."
budget = "a step"
tokenized = true
seeds = [1]
records = ["reproduced/words"]
files = {{ training = "words", trees = "treebank" }}
figures = [
  {{ system = "model", measure = "f1", on = "trees", protocol = "kim", spread = 0.1 }},
  {{ system = "model", measure = "f1", on = "trees", protocol = "kim", builder = "unbiased", spread = 0.1 }},
  {{ system = "model", measure = "f1", on = "trees", protocol = "kim", builder = "right-leaning", spread = 0.1 }},
  {{ system = "model", measure = "f1", on = "trees", protocol = "kim", builder = "left-leaning", spread = 0.1 }},
  {{ system = "model", measure = "f1", on = "trees", protocol = "kim", builder = "judged", spread = 0.1 }},
  {{ system = "student", measure = "f1", on = "trees", protocol = "kim", builder = "own", spread = 0.1 }},
]
[experiments.words.systems]
[experiments.words.systems.model]
recipe = "{recipe}"
set = ["training.steps=1", "training.batch_size=1", "text.held_out=0.3", "model.builder=right-leaning"]
[experiments.words.systems.student]
taught_by = ["model"]
best = 1
judged = true
student = {{ channels = 4, epochs = 1 }}
"""
TREES = """\
(S (NN man) (VB ran))
(S (NP (DT the) (JJ old) (NN man)) (, ,) (VP (VBD sat) (PP (IN on) (NP (DT the) (NN bench)))))
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of data, and in place of the package's experiments one that is trained in a blink."""
    recipe = toml(tmp_path / "tiny.toml")
    (tmp_path / "experiments.toml").write_text(EXPERIMENTS.format(recipe=recipe.as_posix()))
    data = tmp_path / "data"
    (data / "texts").mkdir(parents=True)
    write_text(data / "texts" / "small.train.txt")
    (data / "small.valid.txt.gz").write_bytes(gzip.compress(write_text(tmp_path / "v.txt", 8, seed=3).read_bytes()))
    (data / "trees").mkdir()
    (data / "trees" / "small_1.mrg").write_text(TREES)
    (data / "trees" / "small_2.mrg").write_text(TREES)
    tables = package.data_file("tables.toml")
    monkeypatch.setattr(package, "data_file", lambda name: tables if name == tables.name else tmp_path / name)
    monkeypatch.setattr(recorded, "data_file", package.data_file)
    recorded.write_recorded(tmp_path / "results")
    return tmp_path


def run(prpn: Command, small: Path, *words: object, name: str = "small") -> dict[str, Any]:
    """Run a small experiment; its JSON."""
    result = prpn("reproduce", name, "--data", small / "data", "--out", small / "runs", "--json", *words)
    assert (result.err, result.out.count("\n")) == ("", 1)
    return dict(json.loads(result.out)) | {"status": result.status}


def record(small: Path, values: dict[str, Any], name: str = "small") -> None:
    """Keep what was printed among the results, and gather these."""
    (small / "results" / "reproduced").mkdir(parents=True, exist_ok=True)
    (small / "results" / "reproduced" / f"{name}.json").write_text(json.dumps(values))
    recorded.write_recorded(small / "results")


def test_an_experiment_is_run_recorded_and_repeated(small: Path, prpn: Command) -> None:
    first = run(prpn, small)
    assert first["status"] == 0
    assert first["repeated"] is None
    assert {"experiment", "command", "commit", "data", "runs", "figures", "repeated", "machine"} < set(first)
    assert [(each["system"], each["seed"], each["steps"]) for each in first["runs"]] == [
        ("model", 1, 2), ("model", 2, 2), ("3-gram", None, None), ("scoring trees", None, None)
    ]  # fmt: skip
    assert list(first["figures"]) == [
        "model: validation perplexity",
        "model: test perplexity",
        "model + cache: test perplexity",
        "model + cache: validation perplexity",
        "3-gram: test bits per character",
        "model: F1 under released",
        "model: F1 under kim, unbiased",
        "right: F1 under klein, at most 5 words",
    ]
    figures = first["figures"]
    assert all(set(figures[label]["by_seed"]) == {"1", "2"} for label in figures if label.startswith("model"))
    assert figures["model: test perplexity"]["value"] == pytest.approx(figures["model: validation perplexity"]["value"])
    with_cache = figures["model + cache: test perplexity"]["value"]
    assert with_cache == pytest.approx(figures["model + cache: validation perplexity"]["value"], rel=1e-6)
    assert with_cache < figures["model: test perplexity"]["value"]
    assert (small / "runs" / "small" / "model-1" / "cache.json").exists()
    assert figures["right: F1 under klein, at most 5 words"]["by_seed"] == {"none": 100.0}
    assert first["data"]["treebank"]["file"] == "small_1.mrg, small_2.mrg"
    assert (small / "runs" / "small" / "model-2" / "model.safetensors").exists()

    record(small, first)
    written = small / "runs" / "small" / "model-1" / "record.json"
    before = written.stat().st_mtime_ns
    again = run(prpn, small, "--resume")
    assert written.stat().st_mtime_ns == before  # what is finished is not run again
    assert (again["status"], again["repeated"]) == (0, True)
    assert all(file["as_recorded"] for file in again["data"].values())
    for figure in again["figures"].values():
        assert figure["within"]
        assert figure["difference"] == pytest.approx(0, abs=1e-6)


def test_a_crowd_and_its_student(small: Path, prpn: Command) -> None:
    first = run(prpn, small, name="crowd")
    assert [(each["system"], each["seed"]) for each in first["runs"]] == [
        ("teacher", 1), ("teacher", 2), ("bare", 1), ("bare", 2), ("student", None), ("scoring trees", None)
    ]  # fmt: skip
    assert list(first["figures"]) == [
        "teacher: F1 under kim, half", "bare: F1 under kim, half", "student: F1 under kim, unbiased, half"
    ]  # fmt: skip
    assert first["data"]["training"]["file"] == "small.train.txt, small.valid.txt.gz"
    folder = small / "runs"
    (written,) = (folder / "texts").glob("*-bare.txt")
    bare = written.read_text().split()
    assert bare
    assert "." not in bare
    paths = (small / "data" / "texts" / "small.train.txt", small / "data" / "small.valid.txt.gz")
    read = [line for path in paths for line in first_sentences(str(path))]
    shares = {
        seed: judge(load(folder / "crowd" / f"teacher-{seed}").parser, read, ["unbiased"]).model["unbiased"]
        for seed in (1, 2)
    }
    best = folder / "crowd" / f"teacher-{max(shares, key=shares.__getitem__)}"
    assert [run.get("taught_by") for run in first["runs"]][4] == [best.name]
    student = folder / "crowd" / "student-1+2"
    assert (student / "model.safetensors").read_bytes() == (best / "model.safetensors").read_bytes()
    assert load(student).parser.network.lookahead == 5
    again = run(prpn, small, "--resume", name="crowd")
    assert again["figures"] == first["figures"]

    record(small, first, "crowd")
    table = study_table(small / "results", "crowd").splitlines()
    assert table[0].startswith("| change | setting | F1 under kim, half |")
    (row,) = [row for row in table if "text without punctuation" in row]
    teacher, bare = (first["figures"][f"{name}: F1 under kim, half"]["value"] for name in ("teacher", "bare"))
    assert f"| {bare:.2f} |" in row
    assert f"| {bare - teacher:+.2f} ± " in row


def test_the_words_of_trees_are_a_text(small: Path, prpn: Command) -> None:
    assert run(prpn, small, name="words")["status"] == 0
    (written,) = (small / "runs" / "texts").glob("*.txt")
    assert written.read_text() == "man ran\nthe old man , sat on the bench\n" * 2


def test_each_model_through_its_best_builder(small: Path, prpn: Command) -> None:
    result = run(prpn, small, name="words")
    figures = {name: figure for name, figure in result["figures"].items() if name.startswith("model")}
    parser = load(small / "runs" / "words" / "model-1").parser
    judged = judge(parser, ["the old man , sat on the bench", "man ran"], get_args(Builder), tokenized=True)
    assert result["runs"][0]["judged"] == judged.best_builder != parser.builder
    best = figures["model: F1 under kim, judged, trees"]["by_seed"]["1"]
    through = f"model: F1 under kim, {judged.best_builder}, trees".replace(" paper,", "")
    assert best == figures[through]["by_seed"]["1"]
    others = [figure["by_seed"]["1"] for figure in figures.values()]
    assert len(set(others)) > 1, "every builder has the same trees, so that nothing was chosen"
    student = load(small / "runs" / "words" / "student-1").parser
    assert student.builder == (judged.best_builder if judged.best_builder in LEANING else "unbiased")


def test_every_missing_file_is_named(small: Path, prpn: Command) -> None:
    assert_refused(prpn("reproduce", "crowd"), 2, "small.train.txt, small.valid.txt, small.trees", "--data")
    (small / "data" / "small.valid.txt.gz").unlink()
    assert_refused(prpn("reproduce", "crowd", "--data", small / "data"), 1, "small.valid.txt (another text)")


def test_a_figure_outside_of_what_is_allowed_fails(small: Path, prpn: Command) -> None:
    first = run(prpn, small, "--seed", 2)
    values = first["figures"]["model: test perplexity"]
    assert set(values["by_seed"]) == {"2"}
    values["by_seed"]["2"] *= 2
    record(small, first)
    with (small / "data" / "texts" / "small.train.txt").open("a") as file:
        file.write("the man\n")
    words = ("reproduce", "small", "--data", small / "data", "--out", small / "other", "--seed", 2)
    result = prpn(*words)
    assert result.status == 1
    assert "small.train.txt: other content than recorded" in result.err
    assert "small.valid.txt.gz: as recorded" in result.err
    (row,) = [line for line in result.out.splitlines() if "model: test perplexity" in line]
    assert "not repeated" in row


def test_a_run_folder_is_not_overwritten(small: Path, prpn: Command) -> None:
    run(prpn, small)
    words = ("reproduce", "small", "--data", small / "data", "--out", small / "runs", "--json")
    assert_refused(prpn(*words), 1, "already holds a run", "--resume")


def test_missing_data_is_named(small: Path, prpn: Command) -> None:
    words = ("reproduce", "small", "--json")
    assert_refused(prpn(*words), 2, "small needs files", "small.train.txt", "--data FOLDER")
    assert_refused(prpn(*words, "--data", small / "nowhere"), 1, "nowhere", "no such folder")
    (small / "data" / "texts" / "small.train.txt").unlink()
    (small / "data" / "trees" / "small_1.mrg").rename(small / "data" / "small.other")
    (small / "data" / "trees" / "small_2.mrg").unlink()
    assert_refused(
        prpn(*words, "--data", small / "data"),
        1,
        "small.train.txt (a text)",
        "small.trees (trees)",
        "made by this test",
    )


def test_an_unknown_experiment(prpn: Command) -> None:
    assert_refused(prpn("reproduce", "ngram-wrod"), 2, "no experiment called ngram-wrod", "did you mean ngram-word?")


def test_the_listing_shows_every_row_and_every_experiment(prpn: Command) -> None:
    result = prpn("reproduce")
    assert (result.status, result.err) == (0, "")
    lines = [line.split("  ")[0].strip() for line in result.out.splitlines()]
    for table in load_tables().values():
        assert table.heading in result.out
        for row in table.rows:
            assert any((f"later: {row.system}" if row.later else row.system).startswith(line) for line in lines if line)
            assert row.source.authors.split(",")[0] in result.out
    assert all(name in result.out for name in load_experiments())
    assert "61.23 (quick-parsing-6-epochs)" in result.out
    assert "not recorded yet (ptb-word)" in result.out
    assert "48.96 (demo)" in result.out


def test_the_listing_as_json(prpn: Command) -> None:
    result = prpn("reproduce", "--json")
    assert (result.status, result.err, result.out.count("\n")) == (0, "", 1)
    values = json.loads(result.out)
    assert set(values) == {"tables", "experiments"}
    assert [table["number"] for table in values["tables"]] == [1, 2, 3, 4, 5, 0]
    rows = [row for table in values["tables"] for row in table["rows"]]
    assert all({"system", "value", "source", "protocol", "remark", "later"} == set(row) for row in rows)
    assert all({"authors", "year", "title"} == set(row["source"]) for row in rows)
    ours = {(figure["experiment"], figure["row"]): figure for figure in values["tables"][4]["ours"]}
    assert ours["quick-parsing-6-epochs", "PRPN"]["value"] == pytest.approx(61.23, abs=0.01)
    known = values["experiments"]["quick-word-3-epochs"]
    assert known["command"] == "prpn reproduce quick-word-3-epochs --data FOLDER"
    assert known["files"]["test"] == ["ptb.test.txt"]
    assert known["seconds"] == read_recorded()["quick-word-3-epochs"].seconds


@pytest.mark.parametrize("words", [("--help",), ("quick-word-5-epochs", "--help")])
def test_help_says_how_long_it_took(words: tuple[str, ...], prpn: Command) -> None:
    result = prpn("reproduce", *words)
    assert (result.status, result.err) == (0, "")
    assert "Took: 30 min" in " ".join(result.out.split())
    assert ("ablation" in result.out) == (len(words) == 1)


def test_the_listing_needs_no_torch() -> None:
    lines = ("import sys", "from prpn.cli import main", "try:", " main()", "except SystemExit:", " pass")
    program = "\n".join([*lines, "assert 'torch' not in sys.modules"])
    for words in ([], ["--json"], ["ngram-word", "--help"]):
        command = [sys.executable, "-W", "error", "-c", program, "reproduce", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr


def test_the_page_names_what_exists(prpn: Command) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reproduction.md").read_text(encoding="utf-8")
    options = prpn("reproduce", "--help").out
    commands = [line.split()[2:] for line in page.splitlines() if line.startswith("prpn reproduce")]
    assert len(commands) > 3
    for words in commands:
        assert all(word in options for word in words if word.startswith("--"))
        assert not words or words[0].startswith("--") or words[0] in load_experiments()
    names = {
        name
        for experiment in load_experiments().values()
        for file in experiment.files.values()
        for part in (file, *file.then)
        for name in part.names
    }
    assert all(f"`{name}`" in page for name in names if "?" not in name)
