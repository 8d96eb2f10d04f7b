"""The demonstration, shrunk: it trains both models, compares them with the unigram model, and draws trees."""

import sys
from pathlib import Path

import pytest

from prpn import demo
from prpn.baselines.trees import baselines
from prpn.config import load_recipe, save_recipe
from prpn.errors import InputError, InterruptedRunError
from prpn.text.batches import Batch
from prpn.training.lock import only_run
from prpn.training.loop import Trainer
from prpn.training.signals import StopRequest
from prpn.trees.protocols import PROTOCOLS


def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    small = ("model.embedding=8", "model.hidden=8", "training.steps=2", "training.batch_size=64")
    words = [word for setting in small for word in ("--set", setting)]
    monkeypatch.setattr(sys, "argv", ["demo", "--out", str(tmp_path), *words])
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "mine.txt").write_text("not the demonstration's")
    for _ in range(2):  # a second call replaces what the first left
        demo.main()
        shown = capsys.readouterr().out
        language = shown[: shown.index("MASC, even lines")].splitlines()
        rows = [line for line in language if any(name in line for name in ("unigram", "LSTM  ", "PRPN  "))]
        assert [row.split()[1] for row in rows] == ["unigram", "LSTM", "PRPN"]
        assert all(sentence.split()[-1] in shown for sentence in demo.SENTENCES)
        assert "└" in shown
        assert "prpn train quick-word" in shown
        assert "MASC, even lines: 2,282 sentences" in shown
        scores = shown[len("\n".join(language)) :]
        assert all(f"\n {name} " in scores for name in (*baselines("paper"), "PRPN"))
        assert all(name in scores for name in PROTOCOLS)
    assert (tmp_path / "demo" / "mine.txt").exists()


def test_a_stopped_demonstration_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learn, stops = Trainer._learn, [StopRequest(), StopRequest()]

    def stopped(self: Trainer, batch: Batch) -> tuple[float, int]:
        stop.make()
        return learn(self, batch)

    monkeypatch.setattr(Trainer, "_learn", stopped)
    small = ("model.embedding=8", "model.hidden=8", "training.steps=2", "training.batch_size=64")
    for stop in stops:
        with pytest.raises(InterruptedRunError, match=r"^stopped; the demonstration begins anew next time$"):
            demo._train_anew(load_recipe("demo").override(small), tmp_path / "run", stop)


def test_a_demonstration_under_way_is_not_replaced(tmp_path: Path) -> None:
    recipe = load_recipe("demo")
    save_recipe(recipe, tmp_path / "config.json")
    with only_run(tmp_path), pytest.raises(InputError, match="another run is writing here"):
        demo._train_anew(recipe, tmp_path, StopRequest())
    assert (tmp_path / "config.json").exists()
