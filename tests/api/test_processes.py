"""Models in other processes: pickled, spawned, forked after use, by joblib, and with cloudpickle."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import prpn
from tests.attacks.threads import some_lines
from tests.training.tiny import run, write_text

LINES = some_lines(40)


def brackets(parser: prpn.Model | prpn.BatchParser, line: str) -> str:
    """What a worker does."""
    return parser.parse(line).brackets() if isinstance(parser, prpn.Model) else parser.lines([line])[0]


@pytest.fixture(scope="module")
def model() -> prpn.Model:
    return prpn.load()


def test_a_model_is_the_same_after_a_pickle(model: prpn.Model) -> None:
    again = pickle.loads(pickle.dumps(model))
    assert list(again.pipe(LINES)) == list(model.pipe(LINES))
    assert again.perplexity(LINES[0]) == model.perplexity(LINES[0])
    assert copy.deepcopy(model).parse(LINES[0]) == model.parse(LINES[0])
    assert pickle.loads(pickle.dumps(model.parser)).scores([LINES[0]])[0] == pytest.approx(model.scores(LINES[0]))


def test_a_pickle_keeps_builder_temperature_and_scale(model: prpn.Model) -> None:
    other = model.parser.through("unbiased")
    other.scale = 3.0
    again = pickle.loads(pickle.dumps(other))
    assert (again.builder, again.scale) == ("unbiased", 3.0)
    cold = pickle.loads(pickle.dumps(model.at_temperature(100)))
    assert cold.recipe.model.temperature == 100


def test_a_parser_without_a_language_model(model: prpn.Model, tmp_path: Path) -> None:
    silent = prpn.Model(model.recipe, model.vocabulary, distilled=model.parser)
    silent.save(tmp_path / "silent")
    assert not (tmp_path / "silent" / "model.safetensors").exists()
    for each in (prpn.load(tmp_path / "silent"), pickle.loads(pickle.dumps(silent))):
        assert each.parse(LINES[0]) == model.parse(LINES[0])
        with pytest.raises(prpn.InputError, match="is a parser without a language model"):
            each.perplexity("a")


@pytest.mark.parametrize("error", [prpn.InputError("a", "b", "c"), prpn.ConfigError("d")])
def test_errors_cross_processes(error: prpn.PrpnError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (type(error), str(error))


def test_what_parse_file_counts_crosses_processes(model: prpn.Model, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"the old man\nnot \xff text\n")
    counts = pickle.loads(pickle.dumps(model.parse_file(tmp_path / "text", tmp_path / "trees")))
    (error,) = counts.errors
    assert (error.place, error.cause) == (f"{tmp_path / 'text'}:2", "not UTF-8 (byte 0xff)")
    assert str(error) == f"{error.place}: {error.cause}; {error.remedy}"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("kind", ["model", "batch"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_pool_after_use(method: str, kind: str, model: prpn.Model) -> None:
    parser = model if kind == "model" else prpn.BatchParser(threads=2)
    expected = [brackets(parser, line) for line in LINES]  # with all threads there are
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        found = [pool.submit(brackets, parser, line) for line in LINES[:6]]
        assert [each.result(timeout=120) for each in found] == expected[:6]


def test_joblib_and_cloudpickle(model: prpn.Model) -> None:
    joblib = pytest.importorskip("joblib")
    cloudpickle = pytest.importorskip("cloudpickle")
    expected = [tree.brackets() for tree in model.pipe(LINES[:4])]
    found = joblib.Parallel(n_jobs=2, timeout=120)(joblib.delayed(brackets)(model, line) for line in LINES[:4])
    assert found == expected
    closure = cloudpickle.loads(cloudpickle.dumps(lambda line: model.parse(line).brackets()))
    assert [closure(line) for line in LINES[:4]] == expected


FORK_WHILE_OTHERS_PARSE = """
import os, sys, threading
import prpn
lines = open(sys.argv[1], encoding="utf-8").read().splitlines()
model = prpn.load()
expected = [tree.brackets() for tree in model.pipe(lines)]
stop = False
def work():
    while not stop:
        fresh = prpn.load()
        list(fresh.pipe(lines))
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
status = 0
for _ in range(10):
    if (child := os.fork()) == 0:
        os._exit([tree.brackets() for tree in model.pipe(lines)] != expected)
    status |= os.waitpid(child, 0)[1]
stop = True
for thread in threads: thread.join()
sys.exit(status != 0)
"""


def test_a_fork_while_other_threads_parse(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("\n".join(line for line in LINES if line.split()) + "\n", encoding="utf-8")
    command = [sys.executable, "-W", "ignore", "-c", FORK_WHILE_OTHERS_PARSE, str(tmp_path / "lines")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_parsing_and_pickling_bring_no_torch() -> None:
    program = """
import pickle, sys
import prpn
model = pickle.loads(pickle.dumps(prpn.load()))
model.parse("the old man"), model.distances("the old man"), list(model.pipe(["a b"], form="jsonl")), model.parser
prpn.BatchParser("english", threads=1).spans(["a b c"])
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_trained_model_crosses_too(tmp_path: Path) -> None:
    run(tmp_path / "run", write_text(tmp_path / "text.txt"), "training.steps=3")
    model = prpn.load(tmp_path / "run")
    assert pickle.loads(pickle.dumps(model)).parse("the old man").words == ("the", "old", "man")
    moved = model.to("cpu")
    assert moved is not model
    assert moved.perplexity("the old man") == model.perplexity("the old man")
    assert str(model.device) == "cpu"
