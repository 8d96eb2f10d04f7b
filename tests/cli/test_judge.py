"""The verb judge, as a user sees it."""

from __future__ import annotations

import errno
import gzip
import json
from pathlib import Path
from shutil import copytree

import pytest

from prpn.models.folder import model_folder
from prpn.parsing.parser import Parser
from tests.cli.command import Command, assert_refused

TEXT = "The man, who sat on the bench, left us.\nWhen it rains, the streets, they say, are wet.\n"


def test_the_embedded_model_beside_what_needs_none(prpn: Command, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    result = json.loads(prpn("judge", tmp_path / "text.txt", "--json").out)
    english = result["models"]["english"]
    assert (english["sentences"], english["stretches"], result["sentences"]) == (2, 7, 2)
    assert list(english["model"]) == ["paper", "unbiased", "right-leaning", "left-leaning"]
    assert all(0 <= share <= 1 for share in english["model"].values())
    assert (english["right"], english["left"]) == (2 / 7, 2 / 7)  # "left us", "are wet"; "the man", "when it rains"
    with gzip.open(tmp_path / "text.gz", "wt") as file:
        file.write(TEXT)
    assert json.loads(prpn("judge", tmp_path / "text.gz", "--json").out)["models"] == result["models"]
    assert json.loads(prpn("judge", "-", "--json", stdin=TEXT.encode()).out)["models"] == result["models"]
    shown = prpn("judge", tmp_path / "text.txt", "--builder", "unbiased").out
    assert f"{english['model']['unbiased']:.1%}" in shown
    assert "paper" not in shown


def test_the_best_builder_is_kept(prpn: Command, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    model = tmp_path / "mine"
    copytree(model_folder("english"), model)
    (shares,) = json.loads(prpn("judge", tmp_path / "text.txt", "--json", "-m", model).out)["models"].values()
    best = max(shares["model"], key=shares["model"].get)
    worst = min(shares["model"], key=shares["model"].get)
    assert shares["model"][worst] < shares["model"][best]
    prpn("judge", tmp_path / "text.txt", "-m", model, "--builder", worst, "--keep")
    assert Parser.load(model).builder == worst
    prpn("judge", tmp_path / "text.txt", "-m", model, "--keep")
    assert Parser.load(model).builder == best
    assert prpn("parse", tmp_path / "text.txt", "-m", model).out == (
        prpn("parse", tmp_path / "text.txt", "--builder", best).out
    )


def test_a_folder_that_cannot_be_changed(prpn: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    copytree(model_folder("english"), tmp_path / "mine")

    def read_only(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("prpn.config.save_recipe", read_only)
    refused = prpn("judge", tmp_path / "text.txt", "-m", tmp_path / "mine", "--keep")
    assert_refused(refused, 1, "mine: cannot be changed", "without --keep")


def test_refusals(prpn: Command, tmp_path: Path) -> None:
    (tmp_path / "bare.txt").write_text("no marks at all\n")
    assert_refused(prpn("judge", tmp_path / "bare.txt"), 1, "no part of a sentence is set off", "commas")
    assert_refused(prpn("judge", tmp_path / "none.txt"), 1, "none.txt", "no such file")
    (tmp_path / "latin.txt").write_bytes(TEXT.encode() + b"caf\xe9, au lait, yes\n")
    assert_refused(prpn("judge", tmp_path / "latin.txt"), 1, "latin.txt:3", "UTF-8")
    (tmp_path / "text.txt").write_text(TEXT)
    assert_refused(prpn("judge", tmp_path / "text.txt", "--keep"), 2, "comes with the package", "--builder")
