"""The suite runs at tiny sizes and writes down what a reader needs; nothing here looks at how long it took."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks import __main__ as suite
from benchmarks import evaluation, growth, library, memory, parsing, startup, timing, training
from benchmarks.contenders import STEP_BY_STEP, available_contenders
from benchmarks.plot import Panel, line_plots, ticks
from benchmarks.sizes import SIZES
from benchmarks.timing import alternate


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "keep_freed_memory", lambda: True)  # not for the other tests of this process
    monkeypatch.setattr(training, "CUBE", 64)
    monkeypatch.setattr(timing, "REPEATED", 0.0)
    monkeypatch.setattr(evaluation, "TOKENS", 40)
    monkeypatch.setattr(growth, "BASE", SIZES["tiny"])
    monkeypatch.setattr(growth, "AXES", {"time steps": (2, 4), "memory slots": (2, 4), "batch": (2, 3)})


def printed(figures: Any, tables: Any) -> int:
    return sum(table.row_count for table in tables(figures))


def test_the_record_says_what_was_measured_and_how(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record, plot = tmp_path / "record.json", tmp_path / "plots" / "growth.svg"
    words = ["training", "evaluation", "growth", "--sizes", "tiny", "--rounds", "1"]
    suite.main([*words, "--json", str(record), "--plot", str(plot)])
    figures = json.loads(record.read_text(encoding="utf-8"))
    assert list(figures) == ["command", "commit", "machine", "versions", "settings", "training", "evaluation", "growth"]
    assert figures["command"].startswith("python -m benchmarks training evaluation growth --sizes tiny")
    assert figures["machine"].keys() >= {"processor", "cores", "threads", "load_before", "kernels"}
    assert figures["versions"].keys() == {"prpn", "torch", "numpy"}

    training_figures = figures["training"]["tiny"]
    assert list(training_figures["contenders"]) == available_contenders()
    assert training_figures["ceiling_gigaflops"]["bf16"].keys() >= {"64³", "decoder"}
    row = training_figures["contenders"][STEP_BY_STEP]
    assert row.keys() == {
        "seconds", "tokens_per_second", "times_twin", "times_untuned", "times_step_by_step", "times_lstm", "gigaflops",
        "share_of_ceiling",
    }  # fmt: skip
    assert row["times_step_by_step"] == 1

    scores = figures["evaluation"]["tiny"]
    for name, row in scores.items():
        assert row["nats_a_token"] == pytest.approx(scores[STEP_BY_STEP]["nats_a_token"], rel=1e-3), name

    assert figures["growth"]["memory slots"]["values"] == [2, 4]
    assert ElementTree.parse(plot).getroot().tag.endswith("svg")
    assert "step by step" in capsys.readouterr().out


def test_unknown_names_and_senseless_options_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["speed"], ["training", "--rounds", "0"], ["training", "--plot", "growth.svg"]):
        with pytest.raises(SystemExit):
            suite.main(words)
    assert "choose from training" in capsys.readouterr().err


def test_memory_is_measured_in_processes_of_their_own() -> None:
    figures = memory.measure("tiny", ["prpn PyTorch"])
    row = figures["prpn PyTorch"]
    assert row["peak_mib"] > row["growth_mib"] >= 0
    assert row["share_of_step_by_step"] is None
    assert printed({"tiny": figures}, memory.tables) == 1


def test_parsing_from_python_is_measured_beside_the_command() -> None:
    figures = library.measure(sentences=40, rounds=1)
    assert figures["same_trees"] is True
    assert printed(figures, library.tables) >= 5


def test_parsing_is_measured_from_file_to_file() -> None:
    figures = parsing.measure(sentences=40, rounds=1)
    assert figures.keys() == {"tokenized", "raw"}
    for row in [row for result in figures.values() for row in result.values()]:
        assert row["tokens"] > 40 * 10
        assert row["same_trees"] == 1
    assert printed(figures, parsing.tables) >= 2


def test_the_text_is_drawn_from_whole_corpora() -> None:
    lengths = [len(line.split()) for line in parsing.drawn_sentences(20_000)]
    assert len(lengths) == 20_000
    assert 20 <= sum(lengths) / len(lengths) <= 24
    assert parsing.drawn_sentences(100) == parsing.drawn_sentences(100)
    assert parsing.unsplit("I do n't ( really ) know , it 's $ 5 .") == "I don't (really) know, it's $5."


def test_starting_needs_no_torch() -> None:
    figures = startup.measure(rounds=1)
    assert [row["imports_torch"] for row in figures.values()] == [False, False, False]
    assert printed(figures, startup.tables) == 3


def test_contenders_take_turns_and_slow_ones_sit_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0, 5)
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))  # every turn takes five seconds
    order: list[str] = []
    actions = {name: lambda name=name: order.append(name) for name in "ab"}
    assert alternate(actions, 2) == {"a": [5, 5], "b": [5, 5]}
    assert "".join(order) == "ababab"
    assert alternate(actions, 9, patience=12) == {"a": [5, 5], "b": [5, 5]}
    assert alternate(actions, 9, patience=1) == {"a": [5], "b": [5]}
    assert alternate(actions, 1, warm_up=False) == {"a": [5], "b": [5]}


@pytest.mark.parametrize(("low", "high"), [(3, 3), (10, 1000), (0.02, 0.9), (1, 123_456), (99, 101)])
def test_ticks_enclose_the_range(low: float, high: float) -> None:
    found = ticks(low, high)
    assert found[0] <= low
    assert found[-1] >= high
    assert found == sorted(set(found))


def test_plots_name_and_place_everything() -> None:
    panels = [Panel("x & y", {"a<b": [(1, 10), (10, 100)], "c": [(1, 20)]}), Panel("z", {"c": [(5, 10)]})]
    root = ElementTree.fromstring(line_plots("title", panels))
    words = {element.text for element in root.iter() if element.tag.endswith("text")}
    assert {"title", "a<b", "c", "x & y", "z", "1", "10", "5", "100"} <= words
    circles = [element for element in root.iter() if element.tag.endswith("circle")]
    assert len(circles) == 4
