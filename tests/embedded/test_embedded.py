"""The models that come with the package: found by name, small enough, and what their card says."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import prpn
from prpn.errors import InputError
from prpn.models.folder import DEFAULT, embedded_models, held_out_loss, is_embedded, model_folder
from prpn.parsing.parser import Parser
from tests.cli.command import Command, assert_refused

SENTENCE = "the old man sat on the bench"
MEGABYTES = 12
"""What the model may take of the wheel."""


def test_the_default_is_there() -> None:
    assert DEFAULT in embedded_models()
    folder = model_folder()
    assert is_embedded(folder)
    assert sum(path.stat().st_size for path in folder.iterdir()) < MEGABYTES * 1_000_000


def test_a_folder_of_the_user_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / DEFAULT).mkdir()
    assert is_embedded(model_folder(DEFAULT))
    (tmp_path / DEFAULT / "config.json").write_text("{}")
    assert model_folder(DEFAULT) == Path(DEFAULT)
    assert not is_embedded(model_folder(DEFAULT))
    assert is_embedded(model_folder())  # where none is named
    assert prpn.load().parse(SENTENCE).words == tuple(SENTENCE.split())


def test_an_unknown_name_names_those_there_are() -> None:
    with pytest.raises(InputError, match=f"klingon: not a model folder.*prpn train.*{DEFAULT}"):
        model_folder("klingon")


def test_it_parses_and_speaks() -> None:
    model = prpn.load()
    tree = model.parse(SENTENCE)
    assert tree.words == tuple(SENTENCE.split())
    assert (5, 7) in tree.spans()  # the bench
    assert tree == next(Parser.load().parse_many([SENTENCE])).tree
    assert 1 < model.perplexity(SENTENCE) < len(model.vocabulary)
    assert model.generate("the old man", 5, seed=1).startswith("the old man ")


def test_it_never_saw_these_words() -> None:
    unseen = "the grulpish florbs snazzled on the vorbench"
    model = prpn.load()
    ids = model.vocabulary.encode(unseen.split())
    assert len({index for index in ids if index in model.vocabulary.unknown_ids}) > 1
    assert {(4, 7), (5, 7)} < set(model.parse(unseen).spans())  # on the vorbench


def test_without_a_name_it_is_used(prpn: Command) -> None:
    result = prpn("parse", stdin=f"{SENTENCE}\n".encode())
    assert (result.status, result.err) == (0, "")
    assert result.out.replace("(", "").replace(")", "") == f"{SENTENCE}\n"
    assert prpn("parse", "--model", DEFAULT, stdin=f"{SENTENCE}\n".encode()) == result
    assert json.loads(prpn("perplexity", "-", "--json", stdin=f"{SENTENCE}\n".encode()).out)["tokens"] == 8
    assert prpn("generate", "--tokens", 3, "--seed", 1).status == 0
    card = prpn("info").out
    assert card.startswith(f"# {DEFAULT}\n")
    assert "<!--" not in card


def test_the_package_stays_as_it_is(prpn: Command) -> None:
    words = ("perplexity", "-", "--cache", "--tune")
    assert_refused(prpn(*words, stdin=b"the man\n"), 2, "comes with the package", "tune a copy")


def test_evaluation_has_it_beside_the_baselines(prpn: Command, tmp_path: Path) -> None:
    (tmp_path / "gold.trees").write_text("(S (NP (DT the) (JJ old) (NN man)) (VP (VBD sat) (ADVP (RB down))))\n")
    systems = json.loads(prpn("evaluate", tmp_path / "gold.trees", "--json").out)["systems"]
    assert {"right", "random-distances", DEFAULT} < set(systems)


def test_a_line_is_parsed_without_torch() -> None:
    code = (
        "import sys; sys.argv = ['prpn', 'parse']\n"
        "from prpn.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "assert 'torch' not in sys.modules"
    )
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], input=SENTENCE, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert time.monotonic() - began < 60  # a hang, not a measurement: `make bench` measures


def records() -> dict[str, dict[str, Any]]:
    """The evaluations that the card was made from."""
    paths = (Path(__file__).parents[2] / "results" / "embedded").glob("*-*.json")
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    return {name: record for name, record in found.items() if "systems" in record}


def test_what_the_records_must_say() -> None:
    found = records()
    assert len(found) == 3 * 2 * 3  # treebanks, lengths, builders
    for name, record in found.items():
        for protocol, figures in record["systems"][DEFAULT].items():
            assert figures["low"] > record["systems"]["random-distances"][protocol]["high"], (name, protocol)
    own = Parser.load().builder
    short = found[f"wsj10-{own}"]["systems"]
    assert short[DEFAULT]["released"]["f1"] > short["right"]["released"]["f1"]
    phrases = found[f"masc-{own}"]["by_label"]
    assert phrases[DEFAULT]["DT+NN"] > phrases["right"]["DT+NN"]


@pytest.mark.parametrize("content", ["", "[]", '{"validation": {}}', '{"validation": null}'])
def test_a_record_that_says_nothing(content: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "record.json").write_text(content)
    assert held_out_loss(tmp_path) is None
