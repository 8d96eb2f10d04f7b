"""`--sentences`: prose to the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import Command, assert_refused
from tests.text.test_sentences import PROSE, SENTENCES

pytest.importorskip("sentencex")


@pytest.fixture
def prose(tmp_path: Path) -> Path:
    path = tmp_path / "prose.txt"
    path.write_text(PROSE, encoding="utf-8")
    return path


def test_parse_gives_a_tree_a_sentence(prpn: Command, prose: Path) -> None:
    trees = prpn("parse", prose, "--sentences")
    assert (trees.status, trees.err) == (0, "")
    assert trees.out.count("\n") == len(SENTENCES)
    assert prpn("parse", "--sentences", stdin=PROSE.encode()).out == trees.out
    lines = prpn("parse", stdin="\n".join(SENTENCES).encode())
    assert lines.out == trees.out


def test_perplexity_and_training_of_prose_are_those_of_its_sentences(prpn: Command, prose: Path, work: Path) -> None:
    (prose.parent / "lines.txt").write_text("".join(f"{each}\n" for each in SENTENCES), encoding="utf-8")
    lines = (
        prpn("perplexity", prose.parent / "lines.txt", "--json"),
        prpn("perplexity", prose, "--sentences", "--json"),
    )
    assert lines[0] == lines[1]
    found = []
    for name, options in (("lines.txt", ()), ("prose.txt", ("--sentences", "--language", "en"))):
        text = prose.parent / name
        words = ("train", work / "tiny.toml", text, "--valid", text, "--out", prose.parent / f"run-{name}", *options)
        result = prpn(*words, "--json", "--set", "training.steps=2")
        assert result.status == 0, result.err
        found.append(json.loads(result.out)["validation"])
    assert found[0] == found[1]


def test_wrong_use(prpn: Command, prose: Path) -> None:
    assert_refused(prpn("parse", prose, "--language", "de"), 2, "--language is for --sentences")
    assert_refused(prpn("perplexity", prose, "--sentences", "--against", prose), 2, "leave out --sentences")
