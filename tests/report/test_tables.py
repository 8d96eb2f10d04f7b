"""The tables on the pages are what results/ says."""

import json
from pathlib import Path
from typing import Any

import pytest

from prpn.report.tables import PARTS, with_tables
from prpn.trees.protocols import PROTOCOLS

REPOSITORY = Path(__file__).parents[2]
CARD = "src/prpn/embedded/english/README.md"
FIGURES = {"f1": 12.344, "precision": 1.0, "recall": 2.0, "low": 11.0, "high": 13.06}
RUN = {
    "validation": {"perplexity": 100.5, "bits_per_character": 1.25},
    "steps": 10,
    "seconds": 90,
    "peak_memory_gib": 0.5,
    "finished": "budget spent",
    "recipe": {"training": {"seed": 7}},
}


ROW = {
    "tokens_per_second": 1234.5,
    "times_twin": 2.0,
    "times_untuned": 1.5,
    "times_step_by_step": None,
    "times_lstm": 0.5,
}
BENCHMARK = {
    "training": {"small": {"contenders": {"ours": {**ROW, "share_of_ceiling": 0.5}}}},
    "memory": {"small": {"ours": {"growth_mib": 1000, "share_of_twin": 0.25}}},
    "evaluation": {"small": {"ours": {**ROW, "times_step_by_step": 3.0}}},
    "parsing": {"raw": {"off": {"tokens_per_second": 1000, "sentences_per_second": 10, "same_trees": 1.0}}},
    "startup": {"prpn --help": {"median_seconds": 0.123, "imports_torch": False}},
}


def evaluation(*models: str) -> dict[str, Any]:
    systems = ("left", "right", "random-distances", *models)
    return {
        "builder": "paper",
        "systems": {name: {"kim": FIGURES} for name in systems},
        "differences": {name: {} for name in models},
    }


@pytest.mark.parametrize(
    "page",
    [*(f"docs/{name}.md" for name in ("evaluation", "speed", "reproduction", "log", "recipes")), "README.md", CARD],
)
def test_pages_show_the_records(page: str) -> None:
    assert any((REPOSITORY / "results").glob("*.json"))
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    assert any(f"<!-- {name}: begin -->" in text for name in PARTS)
    assert text == with_tables(text, REPOSITORY / "results")


def write_precision(folder: Path) -> None:
    """Two seeds, of which bf16 makes the loss of quick-word worse by 0.2 and 0.3, and leaves F1 alone."""
    folder.mkdir()
    losses = {"fp32-1": 5.0, "fp32-2": 6.0, "bf16-1": 5.2, "bf16-2": 6.3}
    for recipe in ("quick-word", "quick-parsing"):
        for run, loss in losses.items():
            (folder / f"{recipe}-{run}.json").write_text(json.dumps({"validation": {"loss": loss}}))
    systems = {f"quick-parsing-{run}": {"kim": {"f1": 29 + int(run[-1])}} for run in losses}
    (folder / "trees.json").write_text(json.dumps({"systems": systems}))


def write_gains(folder: Path) -> None:
    """Two seeds of a base of 100 and 110, and a change that takes a tenth off."""
    folder.mkdir()
    for name, average, perplexity in (("base-1", 0.0, 100.0), ("base-2", 0.0, 110.0), ("ema-1", 0.9, 94.5)):
        training = {"average": average, "seed": int(name[-1])}
        record = {"validation": {"perplexity": perplexity}, "steps": 1000, "seconds": 600}
        record["recipe"] = {"text": {}, "model": {"dropout_locked": average > 0}, "training": training}
        (folder / f"{name}.json").write_text(json.dumps(record))


def write_embedded(folder: Path) -> None:
    """Two teachers, a student, and a treebank scored through two builders."""
    folder.mkdir()
    for seed, perplexity in ((1, 120.0), (2, 110.0)):
        teacher = RUN | {"validation": {"perplexity": perplexity}, "recipe": {"training": {"seed": seed}}}
        teacher["data"] = {"training": {"tokens": 1000, "sha256": "0123456789abcdef01"}, "vocabulary": 50}
        (folder / f"teacher-{seed}.json").write_text(json.dumps(teacher))
    student = {
        "sentences": 2000,
        "teachers": ["teacher-1", "teacher-2"],
        "agreement": 0.815,
        "seconds": 60,
        "builder": "unbiased",
    }
    (folder / "student.json").write_text(json.dumps(student))
    for builder, f1 in (("paper", 40.0), ("unbiased", 50.0)):
        found = {protocol: FIGURES | {"f1": f1} for protocol in PROTOCOLS}
        record = {
            "treebank": "some/gold.trees", "sentences": 3, "words": 9, "builder": builder,
            "cleaning": {"maximum": None}, "systems": dict.fromkeys(("right", "random-distances", "english"), found),
            "by_label": {name: {"DT+NN": f1} for name in ("right", "random-distances", "english")},
        }  # fmt: skip
        (folder / f"gold-{builder}.json").write_text(json.dumps(record))


def test_each_record_goes_to_its_table_and_nothing_else_changes(tmp_path: Path) -> None:
    for name, record in {"run": RUN, "wsj": evaluation("mine"), "bare": evaluation()}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "benchmark.json").write_text(json.dumps(BENCHMARK))
    write_precision(tmp_path / "precision")
    write_gains(tmp_path / "gains")
    write_embedded(tmp_path / "embedded")
    (tmp_path / "temperature").mkdir()
    row = {"perplexity": 100.0, "levels": 2.5, "reach": 3.0, "overlapping": 0.125}
    temperatures = [{"temperature": 10.0, **row}, {"temperature": "inf", **row}]
    values = {"trained_at": 10.0, "temperatures": temperatures}
    (tmp_path / "temperature" / "mine.json").write_text(json.dumps(values))
    page = "before\n" + "".join(f"<!-- {name}: begin -->\nold\n<!-- {name}: end -->\n" for name in PARTS) + "after"
    made = with_tables(page, tmp_path).splitlines()
    assert (made[0], made[-1]) == ("before", "after")
    assert "old" not in made
    assert [line for line in made if line.startswith("| [run]")] == [
        "| [run](../results/run.json) | 100.50 | 1.2500 | 10 | 1.5 min | 0.50 GiB | budget spent | 7 |"
    ]
    cells = " | ".join(["", "", "12.34 (11.0–13.1)", "", ""])
    shown = made[made.index("<!-- trees: begin -->") : made.index("<!-- trees: end -->")]
    names = ("right", "random-distances", "mine")
    assert shown[3:] == [f"| `wsj` | paper | {name} | {cells} |" for name in names]
    shown = made[made.index("<!-- baselines: begin -->") : made.index("<!-- baselines: end -->")]
    names = ("left", "right", "random-distances")
    assert shown[3:] == [f"| `bare` | paper | {name} | {cells} |" for name in names]
    for row in (
        "| small | ours | 1,234 | 2.00 | 1.50 |  | 0.50 | 50% | 1,000 | 25% |",
        "| small | ours | 1,234 | 3.00 |",
        "| raw | off | 1,000 | 10 | 100.00% |",
        "| `prpn --help` | 0.12 | no |",
        "| quick-word | held-out nats a token | 5.000, 6.000 | 5.200, 6.300 | +0.250 ± 0.050 | 0.707 |",
        "| quick-parsing | F1, `kim` | 30.0, 31.0 | 30.0, 31.0 | +0.0 ± 0.0 | 0.7 |",
        "| `mine` | 10, as trained | 100.00 | 2.50 | 3.00 | 12.50% |",
        "| `mine` | ∞ | 100.00 | 2.50 | 3.00 | 12.50% |",
        "| base |  | 100.00, 110.00 |  | 1,000 | 10 min |",
        "| ema | `model.dropout_locked=true`, `training.average=0.9` | 94.50 | -10.0% | 1,000 | 10 min |",
        "| their held-out perplexity | 120.00, 110.00 |",
        "| student | learned from 2,000 sentences and teacher-1 and teacher-2, in 60 s; finds 81.5% of what it "
        "is taught in others |",
        "**gold.trees, all lengths**: 3 sentences, 9 words",
        f"| right |{' 40.00 (11.0–13.1) |' * 5}",
        f"| english, `paper` |{' 40.00 (11.0–13.1) |' * 5}",
        f"| english, `unbiased` |{' 50.00 (11.0–13.1) |' * 5}",
        "| gold.trees | 3 | 50.0 | 50.0 | 50.0 | 50.0 | 50.0 | 50.0 |",
        "| gold.trees | english | 50.0 | – | – | – | – | – |",
        "| 2 | PRPN: test perplexity | not recorded yet | 61.98 | PRPN "
        "| 100 epochs, 41,500 steps; hidden 1200 | not recorded yet | `prpn reproduce ptb-word --data FOLDER` |",
    ):
        assert row in made
    assert with_tables("no marker", tmp_path) == "no marker"
