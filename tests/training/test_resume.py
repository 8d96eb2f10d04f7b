"""A run that was interrupted, anywhere and any number of times, ends as if it never had been."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prpn.config import read_saved_recipe
from prpn.errors import InputError, InterruptedRunError
from prpn.training import run as training_run
from prpn.training.checkpoint import read_tensors, write_tensors
from prpn.training.lock import LOCK, only_run
from prpn.training.loop import Trainer
from prpn.training.metrics import Metrics
from prpn.training.signals import stop_requests

from .tiny import MODES, differences, files, metrics, outcome, run, write_text

STEPS = 12
BUDGET = (f"training.steps={STEPS}", "training.epochs=0")


class PowerCut(BaseException):
    """Nothing in the program may catch this."""


@contextmanager
def cut(owner: Any, name: str, call: int, when: str) -> Iterator[None]:
    """End the run before or after the call with this number, counted from 1, of a method."""
    original: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def counted(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call and when == "before":
            raise PowerCut
        result = original(*args, **options)
        if calls == call:
            raise PowerCut
        return result

    with patch.object(owner, name, counted):
        yield


cuts = st.tuples(
    st.sampled_from(
        [
            (Trainer, "_learn"),
            (Trainer, "_evaluate"),
            (Metrics, "append"),
            (Trainer, "save"),
            (Path, "replace"),
        ]
    ),
    st.integers(1, STEPS),
    st.sampled_from(["before", "after"]),
)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("text") / "text.txt")


@pytest.fixture(scope="module")
def uninterrupted(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Any]]:
    """The outcome of each mode's run in one go, made once."""
    known: dict[tuple[str, ...], dict[str, Any]] = {}

    def of(*assignments: str) -> dict[str, Any]:
        if assignments not in known:
            folder = tmp_path_factory.mktemp("whole") / "run"
            run(folder, text, *assignments)
            known[assignments] = outcome(folder)
        return known[assignments]

    return of


@contextmanager
def new_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as parent:
        yield Path(parent) / "run"


def steps_done(folder: Path) -> int:
    _, header = read_tensors(folder / "training" / "checkpoint.safetensors")
    return int(header["position"]["step"])


@settings(max_examples=12)
@given(mode=st.sampled_from(list(MODES)), interruptions=st.lists(cuts, min_size=1, max_size=3))
def test_cut_anywhere(
    mode: str,
    interruptions: list[tuple[tuple[Any, str], int, str]],
    text: Path,
    uninterrupted: Callable[..., dict[str, Any]],
) -> None:
    assignments = (*MODES[mode], *BUDGET)
    with new_folder() as folder:
        for (owner, name), call, when in interruptions:
            try:
                with cut(owner, name, call, when):
                    run(folder, text, *assignments, resume=True)
            except PowerCut:
                pass
        run(folder, text, *assignments, resume=True)
        assert differences(outcome(folder), uninterrupted(*assignments)) == []
        assert not list(folder.rglob("*.tmp"))


@pytest.mark.parametrize("step", range(1, STEPS, 3))
@pytest.mark.parametrize("mode", ["stream", "sentences, averaged"])
def test_cut_between_two_steps(
    mode: str, step: int, text: Path, tmp_path: Path, uninterrupted: Callable[..., dict[str, Any]]
) -> None:
    assignments = (*MODES[mode], *BUDGET, "training.checkpoint_every=1")
    with pytest.raises(PowerCut), cut(Trainer, "_learn", step + 1, "before"):
        run(tmp_path / "run", text, *assignments)
    assert steps_done(tmp_path / "run") == step
    run(tmp_path / "run", text, *assignments, resume=True)
    assert differences(outcome(tmp_path / "run"), uninterrupted(*assignments)) == []


@settings(max_examples=6)
@given(
    mode=st.sampled_from(list(MODES)),
    step=st.integers(1, STEPS - 1),
    number=st.sampled_from([signal.SIGINT, signal.SIGTERM]),
)
def test_a_signal_saves_and_stops(
    mode: str, step: int, number: signal.Signals, text: Path, uninterrupted: Callable[..., dict[str, Any]]
) -> None:
    assignments = (*MODES[mode], *BUDGET)
    learn, calls = Trainer._learn, 0

    def learn_and_signal(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == step:
            os.kill(os.getpid(), number)
            wait_until(lambda: stop.made)
        return learn(*args)

    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    with new_folder() as folder:
        with (
            patch.object(Trainer, "_learn", learn_and_signal),
            pytest.raises(
                InterruptedRunError, match=rf"^stopped at step {step} of {STEPS}; .*run: go on with --resume$"
            ),
            stop_requests() as stop,
        ):
            run(folder, text, *assignments, stop=stop)
        assert steps_done(folder) == step
        assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers
        run(folder, text, *assignments, resume=True)
        assert differences(outcome(folder), uninterrupted(*assignments)) == []


def test_a_second_signal_does_not_wait(text: Path, tmp_path: Path) -> None:
    learn, interrupted, ended = Trainer._learn, Event(), Event()

    def signal_twice(*args: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        wait_until(lambda: stop.made)
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupted.wait(60), "the one who waits does so no longer, though the step goes on"
        ended.set()
        return learn(*args)

    before = signal.getsignal(signal.SIGINT)  # a shell's background jobs ignore it
    with stop_requests() as stop, patch.object(Trainer, "_learn", signal_twice):
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "run", text, stop=stop)
        interrupted.set()
        assert ended.wait(60)
        wait_until(lambda: not any(thread.name == "prpn training" for thread in threading.enumerate()))
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_of_a_caller_without_handlers_saves_and_goes_on_its_way(text: Path, tmp_path: Path) -> None:
    learn, handler = Trainer._learn, signal.signal(signal.SIGINT, signal.default_int_handler)

    def learn_and_interrupt(trainer: Trainer, batch: Any) -> Any:
        if trainer.position.step == 2:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
        return learn(trainer, batch)

    try:
        with patch.object(Trainer, "_learn", learn_and_interrupt), pytest.raises(KeyboardInterrupt, match="--resume"):
            run(tmp_path / "run", text, *BUDGET)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert steps_done(tmp_path / "run") == 3


def wait_until(happened: Callable[[], bool]) -> None:
    """Wait for another thread, not for ever."""
    last = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < last
        time.sleep(0.001)


def test_a_cut_while_the_checkpoint_is_written_leaves_the_old_one(text: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    replace = Path.replace

    def fail_on_the_second_checkpoint(self: Path, target: Path) -> Path:
        if target.name == "checkpoint.safetensors" and target.exists():
            raise PowerCut
        return replace(self, target)

    with patch.object(Path, "replace", fail_on_the_second_checkpoint), pytest.raises(PowerCut):
        run(folder, text, *BUDGET)
    assert steps_done(folder) == 3
    assert {path.name for path in (folder / "training").iterdir()} == {"checkpoint.safetensors"}


@pytest.mark.parametrize("written", [0.0, 0.5, 1.0])
def test_half_a_temporary_file_is_never_read(
    written: float, text: Path, tmp_path: Path, uninterrupted: Callable[..., dict[str, Any]]
) -> None:
    """As after a power failure in the middle of writing, when nobody could tidy up."""
    folder = tmp_path / "run"
    with pytest.raises(PowerCut), cut(Trainer, "_learn", 6, "before"):
        run(folder, text, *BUDGET)
    whole = (folder / "training" / "checkpoint.safetensors").read_bytes()
    left = folder / "training" / ".checkpoint.safetensors.1-00000000.tmp"
    left.write_bytes(whole[: int(len(whole) * written)])
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 8, "epo')  # and half a line after the checkpoint's last
    run(folder, text, *BUDGET, resume=True)
    assert differences(outcome(folder), uninterrupted(*BUDGET)) == []


def test_without_a_checkpoint_resume_starts(
    text: Path, tmp_path: Path, uninterrupted: Callable[..., dict[str, Any]]
) -> None:
    run(tmp_path / "run", text, *BUDGET, resume=True)
    assert differences(outcome(tmp_path / "run"), uninterrupted(*BUDGET)) == []


def test_resuming_a_finished_run_changes_nothing(text: Path, tmp_path: Path) -> None:
    first = run(tmp_path / "run", text, *BUDGET)
    before = outcome(tmp_path / "run")
    second = run(tmp_path / "run", text, *BUDGET, resume=True)
    assert differences(outcome(tmp_path / "run"), before) == []
    of_the_process = {"peak_memory_gib": 0, "wall_seconds": 0}
    assert first | of_the_process == second | of_the_process


@pytest.mark.parametrize("mode", ["stream, averaged", "sentences"])
def test_more_epochs_go_on(mode: str, text: Path, tmp_path: Path) -> None:
    run(tmp_path / "run", text, "training.epochs=1", *MODES[mode])
    run(tmp_path / "run", text, "training.epochs=2", *MODES[mode], resume=True)
    run(tmp_path / "whole", text, "training.epochs=2", *MODES[mode])
    assert differences(outcome(tmp_path / "run"), outcome(tmp_path / "whole")) in ([], ["config"])


def test_more_epochs_are_written_down(text: Path, tmp_path: Path) -> None:
    """config.json says what the run was: a copy of the folder must be able to repeat it."""
    run(tmp_path / "run", text, "training.epochs=1")
    run(tmp_path / "run", text, "training.epochs=2", resume=True)
    assert '"epochs": 2' in (tmp_path / "run" / "config.json").read_text()


def test_more_steps_go_on(text: Path, tmp_path: Path) -> None:
    run(tmp_path / "run", text, "training.steps=4")
    run(tmp_path / "run", text, "training.steps=8", resume=True)
    assert [line["step"] for line in metrics(tmp_path / "run")] == [4, 8]


@pytest.mark.parametrize(
    ("assignment", "what"),
    [
        ("training.learning_rate=0.01", "training configuration"),
        ("training.seed=7", "training configuration"),
        ("training.average=0.5", "training configuration"),
        ("training.batch_size=3", "training configuration"),
        ("model.hidden=10", "model configuration"),
        ("model.temperature=5", "model configuration"),
        ("text.lowercase=true", ""),
        ("text.held_out=0.3", ""),
        ("text.digits=N", ""),
    ],
)
def test_other_settings_are_refused(assignment: str, what: str, text: Path, interrupted: Path) -> None:
    before = files(interrupted)
    with pytest.raises(InputError, match=f"another {what}.*; resume with the settings"):
        run(interrupted, text, *BUDGET, assignment, resume=True)
    assert files(interrupted) == before


@pytest.fixture
def interrupted(text: Path, tmp_path: Path) -> Path:
    with pytest.raises(PowerCut), cut(Trainer, "_learn", 5, "before"):
        run(tmp_path / "run", text, *BUDGET)
    return tmp_path / "run"


def test_a_run_from_before_a_field_goes_on_with_its_default_alone(interrupted: Path, text: Path) -> None:
    path = interrupted / "training" / "checkpoint.safetensors"
    tensors, header = read_tensors(path)
    del header["identity"]["model configuration"]["dropout_locked"]
    del header["identity"]["training configuration"]["bptt_jitter"]
    write_tensors(path, tensors, header)
    with pytest.raises(InputError, match="another training configuration"):
        run(interrupted, text, *BUDGET, "training.bptt_jitter=0.5", resume=True)
    assert run(interrupted, text, *BUDGET, resume=True)["steps"] == STEPS


def test_a_text_split_in_another_way_is_refused(tmp_path: Path) -> None:
    """Also where the vocabulary is given."""
    text, words = tmp_path / "text.txt", "text.tokenizer=unicode"
    text.write_text("well-known (words) here\n" * 60)
    run(tmp_path / "first", text, words, "training.steps=1")
    run(tmp_path / "run", text, words, "training.steps=1", initial=tmp_path / "first")
    with pytest.raises(InputError, match="belongs to a run with another number of training tokens"):
        run(tmp_path / "run", text, words, "training.steps=2", initial=tmp_path / "first", tokenized=True, resume=True)


def test_a_run_from_before_tokens_were_counted_goes_on(interrupted: Path, text: Path) -> None:
    path = interrupted / "training" / "checkpoint.safetensors"
    tensors, header = read_tensors(path)
    for part in ("training", "validation"):
        del header["identity"][f"number of {part} tokens"]
    write_tensors(path, tensors, header)
    assert run(interrupted, text, *BUDGET, resume=True)["steps"] == STEPS


def test_another_text_is_refused(interrupted: Path, tmp_path: Path) -> None:
    other = write_text(tmp_path / "other.txt", seed=1)
    before = files(interrupted)
    with pytest.raises(InputError, match=r"checkpoint\.safetensors: belongs to a run with another text; resume with"):
        run(interrupted, other, *BUDGET, resume=True)
    assert files(interrupted) == before


def test_another_validation_text_is_refused(interrupted: Path, text: Path, tmp_path: Path) -> None:
    other = write_text(tmp_path / "other.txt", seed=1)
    with pytest.raises(InputError, match="another validation text"):
        run(interrupted, text, *BUDGET, validation=str(other), resume=True)


def test_the_same_text_in_another_place_goes_on(
    interrupted: Path, text: Path, tmp_path: Path, uninterrupted: Callable[..., dict[str, Any]]
) -> None:
    moved = tmp_path / "moved.txt"
    shutil.copy(text, moved)
    run(interrupted, moved, *BUDGET, resume=True)
    assert differences(outcome(interrupted), uninterrupted(*BUDGET)) == []


@pytest.mark.parametrize("finished", [False, True])
def test_a_used_folder_is_refused(finished: bool, interrupted: Path, text: Path) -> None:
    if finished:
        run(interrupted, text, *BUDGET, resume=True)
    before = files(interrupted)
    with pytest.raises(InputError, match="run: already holds a run; go on with --resume, or choose another --out"):
        run(interrupted, text, *BUDGET)
    assert files(interrupted) == before


@pytest.mark.parametrize("kept", [{"README.md"}, {"record.json"}, {"parser.safetensors"}])
@pytest.mark.parametrize("resume", [False, True])
def test_a_model_without_its_checkpoint_is_not_trained_over(
    resume: bool, kept: set[str], text: Path, tmp_path: Path
) -> None:
    """Such as a packed one, or one that was distilled."""
    folder = tmp_path / "run"
    run(folder, text, *BUDGET)
    (folder / "parser.safetensors").write_bytes(b"distilled")
    shutil.rmtree(folder / "training")
    for name in {"README.md", "record.json", "parser.safetensors"} - kept:
        (folder / name).unlink()
    before = files(folder)
    with pytest.raises(InputError, match="run: is finished, its checkpoint gone; use --init with another --out"):
        run(folder, text, *BUDGET, resume=resume)
    assert files(folder) == before


def test_a_full_disk_is_an_error_of_one_line_and_can_be_mended(
    interrupted: Path, text: Path, uninterrupted: Callable[..., dict[str, Any]]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    remedy = "make room and go on with --resume, or choose another --out"
    for owner, name in ((Path, "unlink"), (Metrics, "append"), (Path, "replace")):
        with (
            patch.object(owner, name, full),
            pytest.raises(InputError, match=rf"^[^\n]*run: cannot be written \(No space left on device\); {remedy}$"),
        ):
            run(interrupted, text, *BUDGET, resume=True)
    run(interrupted, text, *BUDGET, resume=True)
    assert differences(outcome(interrupted), uninterrupted(*BUDGET)) == []


def test_two_runs_do_not_share_a_folder(interrupted: Path, text: Path, tmp_path: Path) -> None:
    with only_run(interrupted):
        before = files(interrupted)
        with pytest.raises(InputError, match="run: another run is writing here; wait for its end, or choose another"):
            run(interrupted, tmp_path / "not read.txt", *BUDGET, resume=True)
        assert files(interrupted) == before


def test_a_run_that_began_and_ended_meanwhile_is_kept(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = training_run.prepare

    def read_while_another_trains(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(training_run, "prepare", read)
        run(tmp_path / "run", text, *BUDGET)
        return read(*args, **options)

    monkeypatch.setattr(training_run, "prepare", read_while_another_trains)
    with pytest.raises(InputError, match="run: already holds a run"):
        run(tmp_path / "run", text, *BUDGET, "training.seed=7")
    assert read_saved_recipe(tmp_path / "run" / "config.json").training.seed != 7


def test_the_lock_of_a_killed_run_holds_nobody_up(text: Path, tmp_path: Path) -> None:
    (tmp_path / "run" / "training").mkdir(parents=True)
    (tmp_path / "run" / LOCK).touch()
    run(tmp_path / "run", text, *BUDGET)
    assert LOCK not in files(tmp_path / "run")


@pytest.mark.parametrize("name", ["README.md", "config.json", "metrics.jsonl"])
def test_files_of_another_kind_are_not_overwritten(name: str, text: Path, tmp_path: Path) -> None:
    """`--out .` in a project must not replace the project's own README."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).write_text("mine")
    with pytest.raises(InputError, match="run"):
        run(tmp_path / "run", text, "training.steps=1")
    assert files(tmp_path / "run") == {name: b"mine"}


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
def test_a_damaged_checkpoint_is_an_error_of_one_line(share: float, interrupted: Path, text: Path) -> None:
    checkpoint = interrupted / "training" / "checkpoint.safetensors"
    whole = checkpoint.read_bytes()
    checkpoint.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(InputError, match=r"^.*checkpoint\.safetensors: not a readable safetensors file .*$"):
        run(interrupted, text, *BUDGET, resume=True)


def test_a_cache_stays_with_the_weights_it_was_tuned_for(text: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run(folder, text, "training.steps=4")
    cache = folder / "cache.json"
    cache.write_text("tuned")
    run(folder, text, "training.steps=4", resume=True)
    assert cache.read_text() == "tuned"
    run(folder, text, "training.steps=5", resume=True)
    assert not cache.exists()
