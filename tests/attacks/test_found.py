"""What attacks have found, each by its name: it must not come back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from math import inf, nan
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest

import prpn
from prpn.errors import InputError, PrpnError
from prpn.language.cached_score import load_cache
from prpn.models.files import finite, read_json, shown
from prpn.models.weights import read_arrays, read_network
from prpn.training.lock import only_run
from prpn.training.metrics import Metrics
from prpn.training.position import Position
from tests.attacks import sound
from tests.attacks.safetensors_file import Raw, write_sparse
from tests.cli.command import Command, assert_refused

CHECKPOINT = "training/checkpoint.safetensors"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    sound.make(folder)
    return folder


@pytest.fixture
def folder(home: Path, tmp_path: Path) -> Path:
    return copytree(home / "stream", tmp_path / "model")


def spoil(path: Path, change: Callable[[Raw], object]) -> None:
    raw = Raw.read(path)
    change(raw)
    raw.write(path)


def resume(command: Command, home: Path, folder: Path) -> Any:
    words = ("train", home / "stream.toml", "--text", home / "text.txt", "--out", folder, "--resume", "--json")
    return command(*words)


def replace(path: Path, kind: str) -> None:
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(kind)


@pytest.mark.parametrize("kind", ["pipe", "/dev/zero"])
@pytest.mark.parametrize("name", ["cache.json", "record.json", "README.md"])
def test_no_file_of_a_folder_is_waited_for(name: str, kind: str, home: Path, folder: Path, command: Command) -> None:
    replace(folder / name, kind)
    if name == "record.json":
        assert "steps" not in json.loads(command("info", folder, "--json").out)
    elif name == "README.md":
        assert_refused(command("info", folder), 1, "README.md: is not a file")
    else:
        words = ("perplexity", home / "text.txt", "-m", folder, "--cache")
        assert_refused(command(*words), 1, "cache.json: not a cache with size, theta and lambda (is not a file)")


def test_a_card_of_comments_without_ends(folder: Path, command: Command) -> None:
    (folder / "README.md").write_text("# mine\n" + "<!--" * 300_000 + "\nseen <!-- not -->\n\x1b[2J")
    result = command("info", folder)
    assert result.status == 0
    assert "seen \n" in result.out.replace("seen [2J", "seen \n")
    assert "\x1b" not in result.out
    assert "not -->" not in result.out


def test_a_record_that_is_not_json(folder: Path, command: Command) -> None:
    (folder / "record.json").write_text('{"steps": NaN, "seconds": [Infinity, 1]}')
    found = json.loads(command("info", folder, "--json").out)
    assert (found["steps"], found["seconds"]) == (None, [None, 1])


@pytest.mark.parametrize(
    "values",
    [
        {"size": 10**9, "theta": 1, "lambda": 0.1},
        {"size": 2.5, "theta": 1, "lambda": 0.1},
        {"size": True, "theta": 1, "lambda": 0.1},
        {"size": 5, "theta": 10**400, "lambda": 0.1},
        {"size": 5, "theta": "1", "lambda": 0.1},
        [],
    ],
    ids=str,
)
def test_a_cache_of_other_kinds(values: Any, folder: Path) -> None:
    (folder / "cache.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match="not a cache with size, theta and lambda"):
        load_cache(folder)


def test_weights_that_predict_nothing(home: Path, folder: Path, command: Command) -> None:
    def change(raw: Raw) -> None:
        for name in list(raw.arrays):
            if name.startswith(("reading", "predict")) and raw.array(name).ndim:
                raw.put(name, np.full_like(raw.array(name), 3e38))

    spoil(folder / "model.safetensors", change)
    model = prpn.load(folder)
    for ask in (model.perplexity, model.surprisal, model.generate):
        with pytest.raises(PrpnError, match="predicts what is not a number"):
            ask("the old man")
    for more in ((), ("--cache",), ("--cache", "--tune"), ("--per-token", "--json")):
        words = ("perplexity", home / "text.txt", "-m", folder, *more)
        assert_refused(command(*words), 1, "predicts what is not a number")


def test_numbers_without_dimensions_are_saved_as_such(folder: Path, tmp_path: Path) -> None:
    model = prpn.load(folder)
    model.save(tmp_path / "saved")
    before, after = (Raw.read(each / "model.safetensors").arrays for each in (folder, tmp_path / "saved"))
    assert {name: shape for name, (_, shape, _) in after.items()} == {n: shape for n, (_, shape, _) in before.items()}
    assert prpn.load(tmp_path / "saved").perplexity("the old man") == model.perplexity("the old man")


def test_numbers_that_fp32_cannot_hold(folder: Path) -> None:
    name = "reading.0.input_gates.weight"
    spoil(folder / "model.safetensors", lambda raw: raw.put(name, np.full(raw.array(name).shape, 1e300)))
    with pytest.raises(InputError, match="not finite"):
        prpn.load(folder)


@pytest.mark.parametrize("name", ["extra", "parsing.extra", "reading.0.input_gates.weight"])
def test_arrays_are_compared_before_they_are_read(name: str, folder: Path) -> None:
    raw = Raw.read(folder / "model.safetensors")
    shapes = {each: list(shape) for each, (_, shape, _) in raw.arrays.items()} | {name: [1 << 30, 2]}
    write_sparse(folder / "model.safetensors", shapes, raw.metadata)
    with pytest.raises(InputError, match="do not fit the configuration"):
        prpn.load(folder)
    with pytest.raises(InputError, match="do not fit"):
        read_network(folder / "model.safetensors", prpn.load("english").recipe.model, 3)


def test_a_parsers_file_holds_a_parsers_arrays_alone(home: Path, tmp_path: Path) -> None:
    model = copytree(home / "distilled", tmp_path / "distilled")
    spoil(model / "parser.safetensors", lambda raw: raw.put("extra", np.zeros(3, np.float32)))
    with pytest.raises(InputError, match="nothing is called extra"):
        prpn.load(model)


def test_a_look_ahead_beyond_all_windows(home: Path, tmp_path: Path) -> None:
    model = copytree(home / "distilled", tmp_path / "distilled")
    spoil(model / "parser.safetensors", lambda raw: setattr(raw, "json", {"lookahead": 10**4000}))
    with pytest.raises(InputError, match=r"look-ahead 1000+…; take") as caught:
        prpn.load(model)
    assert len(str(caught.value)) < 500


def test_a_window_beyond_all_sentences(home: Path, tmp_path: Path) -> None:
    """Nothing else in the folder says how wide it is."""
    model = copytree(home / "distilled", tmp_path / "distilled")
    raw = Raw.read(model / "parser.safetensors")
    shapes = {each: list(shape) for each, (_, shape, _) in raw.arrays.items()}
    shapes["parsing.convolution.weight"][2] = 1 << 26
    write_sparse(model / "parser.safetensors", shapes, raw.metadata)
    with pytest.raises(InputError, match="has a window of 67,108,864 words"):
        prpn.load(model)


def test_arrays_that_no_memory_holds(tmp_path: Path) -> None:
    """The library that reads them would panic."""
    write_sparse(tmp_path / "x.safetensors", {"a": [1 << 40]})
    with pytest.raises(InputError, match="not a readable safetensors file"):
        read_arrays(tmp_path / "x.safetensors", lambda *_: None)


@pytest.mark.parametrize("kind", ["pipe", "/dev/full", "own file"])
def test_metrics_are_a_file(kind: str, home: Path, folder: Path, tmp_path: Path, command: Command) -> None:
    own = tmp_path / "own.txt"
    own.write_text("mine")
    replace(folder / "metrics.jsonl", str(own) if kind == "own file" else kind)
    assert_refused(resume(command, home, folder), 1, "metrics.jsonl: is")
    assert own.read_text() == "mine"


@pytest.mark.parametrize("content", ["{", "[]\n", "\xff"])
def test_metrics_that_are_none(content: str, folder: Path, home: Path, command: Command) -> None:
    size = (folder / "metrics.jsonl").stat().st_size
    (folder / "metrics.jsonl").write_bytes(content.encode("latin1").ljust(size))
    assert_refused(resume(command, home, folder), 1, "metrics.jsonl", "begin again with another --out")


@pytest.mark.parametrize("kind", ["pipe", "own file"])
def test_a_lock_is_a_file(kind: str, home: Path, folder: Path, tmp_path: Path, command: Command) -> None:
    replace(folder / "training" / "lock", str(tmp_path / "elsewhere") if kind == "own file" else kind)
    assert_refused(resume(command, home, folder), 1, "training/lock: cannot be written")
    with pytest.raises(OSError, match="lock"), only_run(folder):
        pass
    assert not (tmp_path / "elsewhere").exists()


POSITION = dict.fromkeys(("step", "epoch", "batch", "tokens", "nats", "nats_tokens", "best_step"), 0)


@pytest.mark.parametrize("name", ["tokens", "seconds", "nats", "best_loss", "metrics_size"])
@pytest.mark.parametrize("value", [10**400, -1, nan, "a\nb", True, None, 1e300], ids=lambda value: str(value)[:9])
def test_a_position_of_other_numbers(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{name} = [^\n]{{1,70}}$"):
        Position.from_json({**asdict(Position()), name: value}, 10)


def test_a_loss_may_be_endless_and_seconds_may_not() -> None:
    assert Position.from_json({**asdict(Position()), "best_loss": inf}, 10).best_loss == inf
    with pytest.raises(ValueError, match="seconds = inf"):
        Position.from_json({**asdict(Position()), "seconds": inf}, 10)


@pytest.mark.parametrize(
    ("name", "change", "cause"),
    [
        ("optimizer.0.step", lambda array: np.full_like(array, np.inf), "optimizer.0.step is inf"),
        ("optimizer.0.step", lambda array: array - 1000, "below 0"),
        ("optimizer.0.exp_avg_sq", lambda array: array - 1, "below 0"),
        ("optimizer.0.exp_avg_sq", lambda array: array[:1], "has shape"),
        ("optimizer.0.exp_avg_sq", None, "no optimizer.0.exp_avg_sq"),
        ("state.hidden", lambda array: array[..., :1], "has shape"),
        ("state.embeddings", lambda array: np.concatenate([array, array]), "has shape"),
        ("state.cells", None, "no state.cells"),
        ("random.cpu", lambda array: array[:7], "has shape"),
        ("random.cpu", lambda array: array.astype("<f4"), "no state of a generator"),
    ],
)
def test_a_checkpoint_of_other_tensors(
    name: str, change: Callable[[Any], Any] | None, cause: str, home: Path, folder: Path, command: Command
) -> None:
    def spoiled(raw: Raw) -> None:
        if change is None:
            del raw.arrays[name]
        else:
            raw.put(name, np.ascontiguousarray(change(raw.array(name))).reshape(np.shape(change(raw.array(name)))))
        raw.json = {key: value for key, value in raw.json.items() if key != "tensors"}

    spoil(folder / CHECKPOINT, spoiled)
    assert_refused(resume(command, home, folder), 1, "checkpoint.safetensors", cause, "begin again with another --out")


def test_a_state_of_another_type_is_a_state(home: Path, folder: Path, command: Command) -> None:
    spoil(folder / CHECKPOINT, lambda raw: raw.put("state.hidden", raw.array("state.hidden").astype("<f8")))
    assert resume(command, home, folder).status == 0


def test_a_tensor_that_no_run_writes_is_not_read(home: Path, folder: Path, command: Command) -> None:
    raw = Raw.read(folder / CHECKPOINT)
    shapes = {each: list(shape) for each, (_, shape, _) in raw.arrays.items()} | {"state.more": [1 << 31]}
    raw.json = {key: value for key, value in raw.json.items() if key != "tensors"}
    write_sparse(folder / CHECKPOINT, shapes, raw.metadata)
    assert_refused(resume(command, home, folder), 1, "a tensor of another kind (state.more)")


def test_packing_hands_on_no_file_of_whoever_packs(folder: Path, tmp_path: Path, command: Command) -> None:
    (tmp_path / "secret").write_text("mine")
    (folder / "ATTRIBUTION").symlink_to(tmp_path / "secret")
    assert_refused(command("pack", folder, "--out", tmp_path / "packed"), 1, "ATTRIBUTION: is a link")
    assert not (tmp_path / "packed").exists()


def test_packing_keeps_what_fp16_cannot_hold(folder: Path, tmp_path: Path, command: Command) -> None:
    name = "reading.0.input_gates.weight"
    spoil(folder / "model.safetensors", lambda raw: raw.put(name, raw.array(name) + np.float32(1e5)))
    assert command("pack", folder, "--out", tmp_path / "packed").status == 0
    assert prpn.load(tmp_path / "packed").perplexity("the old man") > 0


def test_packing_looks_at_what_it_packs(folder: Path, tmp_path: Path, command: Command) -> None:
    spoil(folder / "model.safetensors", lambda raw: raw.put("extra", np.zeros(3, np.float32)))
    assert_refused(command("pack", folder, "--out", tmp_path / "packed"), 1, "nothing is called extra")


@pytest.mark.parametrize("depth", [101, 900, 100_000])
def test_json_that_is_nested_too_deep(depth: int, folder: Path) -> None:
    (folder / "config.json").write_text('{"model": {"hidden": ' + "[" * depth + "]" * depth + "}}")
    with pytest.raises(InputError, match="nested too deep"):
        prpn.load(folder)


@pytest.mark.parametrize(
    "value",
    ["[" * 5000, "0x" + "f" * 6000, "9" * 6000, "[[[[1]]]]", '"' + "x" * 9999 + '"'],
    ids=["lists", "hexadecimal", "digits", "list", "text"],
)
def test_a_setting_that_is_no_value(value: str, home: Path, command: Command) -> None:
    result = command("train", "quick-word", "--text", home / "text.txt", "--set", f"model.hidden={value}")
    assert_refused(result, 2, "model.hidden")
    assert len(result.err) < 400


def test_sizes_that_no_memory_holds_are_counted_alone(folder: Path, command: Command) -> None:
    """Of a run that has no weights yet."""
    for name in ("model.safetensors", "README.md"):
        (folder / name).unlink()
    config = json.loads((folder / "config.json").read_text())
    config["model"]["hidden"] = 2**31 - 2
    (folder / "config.json").write_text(json.dumps(config))
    assert json.loads(command("info", folder, "--json").out)["parameters"] > 2**62


@pytest.mark.parametrize("value", ["a\nb", "x" * 10**6, 10**5000, [[]] * 9, {"a": 1}, None, inf], ids=lambda _: "")
def test_what_is_shown_of_a_value_is_short(value: Any) -> None:
    assert len(shown(value)) < 70
    assert "\n" not in shown(value)


@pytest.mark.parametrize("name", ["--sentences", "--channels", "--lookback", "--lookahead", "--epochs", "--seed"])
def test_a_student_of_impossible_sizes(name: str, home: Path, tmp_path: Path, command: Command) -> None:
    words = ("distill", "-m", home / "stream", "--text", home / "text.txt", "--out", tmp_path / "new", name, 10**20)
    assert_refused(command(*words), 2, f"{name[2:]} = {10**20}: give at most")


def test_more_lines_than_can_be_counted(home: Path, command: Command) -> None:
    assert command("judge", home / "text.txt", "-m", home / "stream", "--lines", 10**20).status == 0


def test_a_temperature_that_no_number_holds(home: Path, command: Command) -> None:
    words = ("temperature", home / "text.txt", "-m", home / "stream", "--tau", "1e308")
    assert_refused(command(*words), 2, "--tau: more than 1e38", "give inf")


def test_what_is_not_finite_is_null() -> None:
    assert finite({"a": [nan, (inf, 1)], "b": "nan"}) == {"a": [None, [None, 1]], "b": "nan"}


def test_text_that_is_too_large(tmp_path: Path) -> None:
    with (tmp_path / "config.json").open("wb") as file:
        file.truncate(1 << 33)
    with pytest.raises(InputError, match="is too large"):
        read_json(tmp_path / "config.json")


def test_metrics_of_a_run_that_begins(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "metrics.jsonl")
    with pytest.raises(InputError, match="is not a file"):
        Metrics(tmp_path).cut(0)
