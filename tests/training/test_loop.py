"""What a run does: which batches it reads, what it keeps, when it ends, where it starts."""

from __future__ import annotations

import math
import os
import threading
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
import torch

from prpn import kernels
from prpn.api.model import load
from prpn.errors import ConfigError, InputError, PrpnError
from prpn.model import PRPN
from prpn.text.batches import Batch
from prpn.text.vocabulary import Vocabulary
from prpn.training import loop
from prpn.training.checkpoint import load_weights, read_tensors, write_tensors
from prpn.training.data import prepare, training_batches
from prpn.training.evaluate import ESTIMATE_COLUMNS, LanguageScore, score
from prpn.training.loop import Trainer

from .tiny import MODES, WORDS, files, metrics, recipe, run, write_text


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("text") / "text.txt")


@pytest.fixture(scope="module")
def trained(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    run(folder, text)
    return folder


MEASURED_AT_THE_END = ("parsing.distance_scale",)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return read_tensors(folder / "model.safetensors")[0]


def scripted(monkeypatch: pytest.MonkeyPatch, losses: list[float]) -> list[dict[str, torch.Tensor]]:
    """Let the evaluations find these losses; the weights at each of them."""
    seen: list[dict[str, torch.Tensor]] = []

    def evaluate(network: PRPN, *_: Any, **__: Any) -> LanguageScore:
        seen.append({name: tensor.clone() for name, tensor in network.state_dict().items()})
        return LanguageScore(nats=losses[len(seen) - 1] * 100, tokens=100, unknown=0, characters=400)

    monkeypatch.setattr(loop, "score", evaluate)
    return seen


# What is read


@pytest.mark.parametrize("mode", ["stream", "sentences"])
def test_every_epoch_reads_its_own_batches_in_order(
    mode: str, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Batch] = []
    learn = Trainer._learn

    def watched(self: Trainer, batch: Batch) -> tuple[float, int]:
        read.append(batch)
        return learn(self, batch)

    monkeypatch.setattr(Trainer, "_learn", watched)
    chosen = recipe("training.epochs=3", "training.evaluate_every=0", *MODES[mode])
    run(tmp_path / "run", text, "training.epochs=3", "training.evaluate_every=0", *MODES[mode])
    data = prepare(chosen, [str(text)], None)
    expected = [batch for epoch in range(3) for batch in training_batches(chosen.training, data, epoch)]
    assert len(read) == len(expected)
    unlike = [
        k for k, (a, b) in enumerate(zip(read, expected, strict=True)) if not np.array_equal(a.targets, b.targets)
    ]
    assert unlike == []


@pytest.mark.parametrize("sentences", [8, 60_000])
def test_validation_text_from_a_pipe_is_read_whole(sentences: int, text: Path, tmp_path: Path) -> None:
    held_out, pipe = write_text(tmp_path / "held-out.txt", sentences, seed=3), tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(held_out.read_bytes(),), daemon=True)
    writer.start()
    found = prepare(recipe(), [str(text)], str(pipe)).validation
    assert np.array_equal(found.ids, prepare(recipe(), [str(text)], str(held_out)).validation.ids)
    writer.join()


# What is kept


@pytest.mark.parametrize("mode", MODES)
def test_the_kept_weights_have_the_lowest_estimate(mode: str, text: Path, tmp_path: Path) -> None:
    rough = ("training.learning_rate=0.3", "training.evaluate_every=2", *MODES[mode])  # so that it goes up and down
    result = run(tmp_path / "run", text, *rough)
    lines = metrics(tmp_path / "run")
    estimates = [line["validation_loss_estimate"] for line in lines]
    best = int(np.argmin(estimates))
    assert result["best_step"] == lines[best]["step"]
    assert [line["best"] for line in lines] == [
        loss < min(estimates[:place], default=math.inf) for place, loss in enumerate(estimates)
    ]
    chosen = recipe(*rough)
    data = prepare(chosen, [str(text)], None)
    network = PRPN(chosen.model, len(data.vocabulary))
    load_weights(network, weights(tmp_path / "run"), "here")
    again = score(network, data.validation, data.vocabulary, chosen.training, columns=ESTIMATE_COLUMNS)
    assert again.loss == pytest.approx(estimates[best], rel=1e-6)
    reported = score(network, data.validation, data.vocabulary, chosen.training)
    assert result["validation"]["loss"] == pytest.approx(reported.loss, rel=1e-6)


def test_the_weights_of_the_best_evaluation_are_kept(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = scripted(monkeypatch, [3.0, 1.0, 2.0, 1.0, 2.0])
    run(tmp_path / "run", text, "training.steps=5", "training.evaluate_every=1")
    kept = weights(tmp_path / "run")
    assert kept
    assert all(torch.equal(tensor, seen[1][name]) for name, tensor in kept.items() if name not in MEASURED_AT_THE_END)


def test_the_rate_falls_when_the_watched_loss_does_not(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, [2.0, 3.0, 3.0, 3.0])
    settings = ("training.epochs=4", "training.evaluate_every=0", "training.plateau_patience=1", "model.parsing=false")
    run(tmp_path / "run", text, "training.learning_rate=0.01", *settings)
    assert [line["learning_rate"] for line in metrics(tmp_path / "run")] == [0.01, 0.01, 0.01, 0.005]


def test_metrics_count_steps_epochs_and_tokens(trained: Path, text: Path) -> None:
    lines = metrics(trained)
    data = prepare(recipe(), [str(text)], None)
    epoch = len(training_batches(recipe().training, data, 0))
    assert [line["step"] for line in lines] == sorted({*range(4, 2 * epoch, 4), epoch, 2 * epoch})
    assert all(line["epoch"] == round(line["step"] / epoch, 4) for line in lines)
    once = sum(batch.targets.size for batch in training_batches(recipe().training, data, 0))
    assert [line["tokens"] for line in lines if line["step"] % epoch == 0] == [once, 2 * once]
    assert all(
        line["validation_perplexity_estimate"] == pytest.approx(math.exp(line["validation_loss_estimate"]))
        for line in lines
    )


# When it ends


def test_early_stopping(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, [3.0, 2.0, 2.5, 1.5, 1.5, 1.6, 1.0])
    result = run(
        tmp_path / "run", text, "training.steps=50", "training.epochs=0", "training.evaluate_every=1",
        "training.early_stopping=2",
    )  # fmt: skip
    assert (result["steps"], result["best_step"], result["finished"]) == (6, 4, "early stopping")
    assert len(metrics(tmp_path / "run")) == 6
    again = run(
        tmp_path / "run", text, "training.steps=50", "training.epochs=0", "training.evaluate_every=1",
        "training.early_stopping=2", resume=True,
    )  # fmt: skip
    assert again["steps"] == 6


@pytest.mark.parametrize(("budget", "steps"), [(("steps=3", "epochs=0"), 3), (("steps=3", "epochs=1"), 3)])
def test_the_smaller_budget_ends_a_run(budget: tuple[str, ...], steps: int, text: Path, tmp_path: Path) -> None:
    result = run(tmp_path / "run", text, *(f"training.{each}" for each in budget))
    assert (result["steps"], result["finished"]) == (steps, "budget spent")


@pytest.mark.parametrize("kernel", ["off", "autograd"])
def test_a_loss_that_is_not_a_number(kernel: str, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRPN_KERNELS", kernel)
    assert kernels.in_use() == kernel
    loss = PRPN.loss
    monkeypatch.setattr(PRPN, "loss", lambda *args: loss(*args) * math.nan)
    with pytest.raises(
        PrpnError,
        match=r"^the loss is not a number at step 1; lower training\.learning_rate \(0\.02\) or training\.clip, "
        "then start again with another --out$",
    ):
        run(tmp_path / "run", text)
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_weights_that_are_not_numbers_are_not_a_missing_file(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last step may be the one that breaks: then only the evaluation sees it."""
    scripted(monkeypatch, [math.nan])
    with pytest.raises(PrpnError, match="learning_rate"):
        run(tmp_path / "run", text, "training.steps=1")


# Whether it learns


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("flavour", ["paper", "released"])
def test_the_loss_falls_on_a_text_that_repeats(mode: str, flavour: str, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("a b c d e f g h\n" * 40)
    run(
        tmp_path / "run", text, f"model.flavour={flavour}", "training.steps=40", "training.epochs=0",
        "training.learning_rate=0.03", "training.evaluate_every=10", *MODES[mode],
    )  # fmt: skip
    estimates = [line["validation_loss_estimate"] for line in metrics(tmp_path / "run")]
    assert min(estimates) < 0.75 * math.log(9)
    assert min(estimates) < estimates[0]


# Where it starts


def test_starts_from_other_weights(trained: Path, tmp_path: Path) -> None:
    other = write_text(tmp_path / "other.txt", seed=5)
    other.write_text(other.read_text() + "unheard words here\n" * 2)
    still = ("training.learning_rate=1e-12", "training.weight_decay=0", "training.steps=1")
    run(tmp_path / "run", other, *still, initial=trained)
    before, after = weights(trained), weights(tmp_path / "run")
    for name in before:
        if "running" not in name and "num_batches" not in name and name not in MEASURED_AT_THE_END:
            torch.testing.assert_close(after[name], before[name], rtol=0, atol=1e-9)
    assert (tmp_path / "run" / "vocabulary.json").read_bytes() == (trained / "vocabulary.json").read_bytes()
    assert "unheard" not in Vocabulary.load(tmp_path / "run" / "vocabulary.json")


def test_a_start_from_other_weights_can_be_resumed(trained: Path, text: Path, tmp_path: Path) -> None:
    run(tmp_path / "whole", text, "training.steps=6", initial=trained)
    run(tmp_path / "run", text, "training.steps=4", "training.evaluate_every=2", initial=trained)
    run(tmp_path / "run", text, "training.steps=6", "training.evaluate_every=2", initial=trained, resume=True)
    one, other = (read_tensors(tmp_path / name / "training" / "checkpoint.safetensors")[0] for name in ("whole", "run"))
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def test_does_not_touch_the_model_it_starts_from(trained: Path, text: Path, tmp_path: Path) -> None:
    before = files(trained)
    run(tmp_path / "run", text, "training.steps=1", initial=trained)
    assert files(trained) == before


@pytest.mark.parametrize("change", ["model.hidden=10", "model.layers=2", "model.flavour=paper"])
def test_refuses_to_start_from_another_network(change: str, trained: Path, text: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"^--init .*: its network is not the recipe's; give its own recipe \(tiny\)$"
    ):
        run(tmp_path / "run", text, change, initial=trained)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("missing", ["", "vocabulary.json", "config.json", "model.safetensors"])
def test_refuses_to_start_from_what_is_no_model(missing: str, trained: Path, text: Path, tmp_path: Path) -> None:
    start = tmp_path / "start"
    if missing:
        start.mkdir()
        for name, content in files(trained).items():
            if "/" not in name and name != missing:
                (start / name).write_bytes(content)
    with pytest.raises(InputError, match="start"):
        run(tmp_path / "run", text, initial=start)
    assert not (tmp_path / "run").exists()


# What is left behind


def test_folder_of_a_finished_run(trained: Path) -> None:
    assert set(files(trained)) == {
        "config.json", "model.safetensors", "vocabulary.json", "README.md", "metrics.jsonl", "record.json",
        "training/checkpoint.safetensors",
    }  # fmt: skip


def test_a_tied_decoder_is_stored_once(trained: Path) -> None:
    assert "decoder.weight" not in weights(trained)
    assert "embedding.weight" in weights(trained)


def test_the_spread_of_distances_is_measured_on_held_out_text(text: Path, trained: Path) -> None:
    """Each held-out line by itself, as the network scores it, but for its first word."""
    data, network = prepare(recipe(), [str(text)], None), PRPN(recipe().model, len(WORDS) + 2)
    load_weights(network, weights(trained), "trained")
    network.eval()
    found: list[float] = []
    words: list[int] = []
    for token in data.validation.ids.tolist():
        if token != data.vocabulary.end:
            words.append(token)
            continue
        embeddings = network.embedding(torch.tensor([data.vocabulary.start, *words]))[:, None]
        before = embeddings.new_zeros(recipe().model.lookback, 1, recipe().model.embedding)
        scores = network.parsing.scores(torch.cat([before, embeddings]))[..., 0]  # type: ignore[operator]
        found += scores.flatten()[2:].tolist()
        words = []
    assert weights(trained)["parsing.distance_scale"].item() == pytest.approx(np.std(found), rel=1e-4)
    assert load(trained).parse("the old man sat", "right-leaning").words == ("the", "old", "man", "sat")


def test_leaning_needs_the_spread_of_distances(trained: Path, tmp_path: Path) -> None:
    """Files of weights from before it was measured have none."""
    copytree(trained, tmp_path / "older")
    path = tmp_path / "older" / "model.safetensors"
    write_tensors(path, {name: value for name, value in weights(trained).items() if "scale" not in name})
    older = load(tmp_path / "older")
    assert older.parse("the old man sat", "paper") == load(trained).parse("the old man sat", "paper")
    with pytest.raises(InputError, match="left-leaning needs the spread of distances"):
        older.parse("the old man sat", "left-leaning")
