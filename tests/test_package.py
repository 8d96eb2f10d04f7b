"""The package as users meet it: what importing costs, its public names, a trained model; what the repository says."""

from __future__ import annotations

import math
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import prpn
from prpn.errors import InputError
from tests.language.models import untrained
from tests.training.tiny import recipe, run, write_text

REPOSITORY = Path(__file__).parents[1]
SENTENCE = "the old man sat on the bench ."


# Importing

IMPORTS = """
import sys

import prpn
heavy = {"torch", "numpy", "safetensors", "rich", "typer"} & set(sys.modules)
assert not heavy, f"import prpn brought {heavy}"
prpn.Recipe, prpn.load_recipe, prpn.recipe_names(), prpn.ConfigError
assert "torch" not in sys.modules, "the configuration brought torch"
prpn.Tree, prpn.build
assert "torch" not in sys.modules, "trees brought torch"

from prpn.cli import main
for words in (
    ["--help"], ["--version"], ["train", "--help"], ["perplexity", "--help"], ["nonsense"], [], ["recipe"],
    ["recipe", "quick-word"], ["parse", prpn.__file__], ["parse", prpn.__file__, "--sentences", "--format", "jsonl"],
):
    sys.argv = ["prpn", *words]
    try:
        main()
    except SystemExit:
        pass
    assert "torch" not in sys.modules, f"prpn {words} brought torch"
"""


def test_what_needs_no_torch_does_not_import_it() -> None:
    command = [sys.executable, "-W", "error", "-c", IMPORTS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", prpn.__all__)
def test_public_names(name: str) -> None:
    assert getattr(prpn, name).__doc__


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="module prpn has no attribute nonsense"):
        _ = prpn.nonsense


def test_version_is_that_of_the_project() -> None:
    assert f'version = "{prpn.__version__}"' in (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")


def test_every_file_of_the_package_is_one_that_make_builds_it_from() -> None:
    command = re.search(r"^PACKAGE := .*\$\(shell (find .*)\)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    assert command is not None
    words = shlex.split(command[1])
    found = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.splitlines()
    there = (path for path in (REPOSITORY / "src" / "prpn").rglob("*") if path.is_file() and path.suffix != ".so")
    files = (path for path in there if path.parent.name != "__pycache__")
    assert sorted(found) == sorted(str(path.relative_to(REPOSITORY)) for path in files)


# A trained model


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("text") / "text.txt")


@pytest.fixture(
    scope="module", params=[("released", "stream"), ("released", "sentences"), ("paper", "stream")], ids="-".join
)
def model(request: pytest.FixtureRequest, text: Path, tmp_path_factory: pytest.TempPathFactory) -> prpn.Model:
    flavour, batching = request.param
    folder = tmp_path_factory.mktemp("model") / "run"
    run(folder, text, "training.steps=3", f"model.flavour={flavour}", f"training.batching={batching}")
    return prpn.load(folder)


def test_parse(model: prpn.Model) -> None:
    tree = model.parse(SENTENCE)
    assert isinstance(tree, prpn.Tree)
    assert tree.words == tuple(SENTENCE.split())
    assert len(tree.spans()) == len(tree) - 1, "a binary tree"
    assert tree == model.parse(SENTENCE.split())
    assert tree == prpn.Tree.from_brackets(tree.brackets())


@pytest.mark.parametrize(("sentence", "brackets"), [("man", "(man)"), ("old man", "(old man)"), ("", "()")])
def test_parse_of_few_words(sentence: str, brackets: str, model: prpn.Model) -> None:
    assert model.parse(sentence).brackets() == brackets
    assert len(model.distances(sentence)) == len(sentence.split())


def test_parse_of_unknown_words(model: prpn.Model) -> None:
    assert model.parse("zyzzyvas zyx zyx").words == ("zyzzyvas", "zyx", "zyx")


def test_distances(model: prpn.Model) -> None:
    distances, scores = model.distances(SENTENCE), model.scores(SENTENCE)
    assert distances.shape == scores.shape == (8,)
    assert (distances >= 0).all()
    if model.recipe.model.flavour == "released":
        assert (distances <= 1).all()
        np.testing.assert_allclose(distances, 1 / (1 + np.exp(-scores)))
    else:
        np.testing.assert_allclose(distances, np.maximum(scores, 0))


def test_distances_are_those_the_network_uses(model: prpn.Model) -> None:
    ids = [model.vocabulary.start, *model.vocabulary.encode(SENTENCE.split())]
    with torch.no_grad():
        output = model.network(torch.tensor(ids)[:, None])
    np.testing.assert_allclose(model.distances(SENTENCE), output.parse.distance_tape[-8:, 0].numpy(), atol=1e-6)


def test_distances_at_the_extremes(model: prpn.Model) -> None:
    with torch.no_grad():
        heads = model.network.parsing.heads
        before = heads.bias.clone()
        for value in (-1e6, 1e6):
            heads.bias.fill_(value)
            assert np.isfinite(model.distances(SENTENCE)).all()
        heads.bias.copy_(before)


def test_builder(model: prpn.Model) -> None:
    scores = model.scores(SENTENCE)
    for builder in ("paper", "unbiased"):
        assert model.parse(SENTENCE, builder) == prpn.build(SENTENCE.split(), scores, builder)
    assert model.parse(SENTENCE) == model.parse(SENTENCE, "paper")


def test_perplexity(model: prpn.Model, text: Path) -> None:
    from_file = model.score_file(str(text))
    assert math.isfinite(from_file.perplexity)
    assert model.perplexity(text.read_text()) == pytest.approx(from_file.perplexity, rel=1e-9)


@pytest.mark.parametrize("nothing", ["", "\n", "  \n\n"])
def test_perplexity_of_nothing(nothing: str, model: prpn.Model) -> None:
    with pytest.raises(InputError, match="no token in it"):
        model.perplexity(nothing)


def test_no_trees_without_a_parsing_network() -> None:
    plain = untrained(recipe("model.parsing=false"))
    with pytest.raises(InputError, match=r"no parsing network; use a model with model\.parsing = true"):
        plain.parse(SENTENCE)


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("text.blank_lines=true",),
        ("text.line_ends=false",),
        ("text.tokenizer=unicode", "text.lowercase=true"),
        ("text.tokenizer=characters",),
        ("text.tokenizer=characters", "text.line_ends=false"),
        ("training.batching=sentences",),
    ],
    ids=lambda settings: ",".join(settings) or "default",
)
@pytest.mark.parametrize(
    "text",
    [
        "the old man\nsat .\n",
        "the old man\nsat .",
        "the old man\n\n \nsat .\n",
        "the old man\r\nsat .\r\n",
        "the old man </s>\nsat . <eos>\n",
        "the old\u2028man\x0bsat\x85.\n",
    ],
    ids=["plain", "no last line end", "blank lines", "Windows", "closed lines", "other separators"],
)
def test_perplexity_of_a_string_is_that_of_the_file(settings: tuple[str, ...], text: str, tmp_path: Path) -> None:
    chosen = recipe(*settings)
    model = untrained(chosen)
    (tmp_path / "text.txt").write_bytes(text.encode())
    assert model.perplexity(text) == pytest.approx(model.score_file(str(tmp_path / "text.txt")).perplexity, rel=1e-6)


def test_a_list_is_taken_as_tokens() -> None:
    words = untrained(recipe("text.tokenizer=unicode"))
    assert words.parse(["(old", "man)"]).words == ("(old", "man)")
    characters = untrained(recipe("text.tokenizer=characters"), list("abc_"))
    assert characters.parse("ab c").words == tuple("ab_c")
    assert characters.parse(["a", "b", "_", "c"]).words == tuple("ab_c")


# The repository

MACHINE_PATH = re.compile(r"(?<![\w.$}~/-])/(?:work|root|tmp|home(?!/someone\b)|Users|opt|mnt|srv|data|scratch)/[\w.]")
REGISTRY = re.compile(
    r"(?:extra-)?index-url|find-links|PIP_INDEX|pythonhosted\.org|pypi\.org/simple|download\.pytorch\.org|//[\w.-]+/simple\b"
    r"|\b(?:artifactory|nexus|devpi)\b",
    re.IGNORECASE,
)


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout")
    return [REPOSITORY / name for name in listed.stdout.split("\0") if name and (REPOSITORY / name).is_file()]


@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY], ids=["machine path", "registry"])
def test_no_file_names_a_place_of_one_machine(pattern: re.Pattern[str]) -> None:
    found = []
    for path in tracked():
        content = path.read_bytes()
        if path == Path(__file__) or b"\0" in content:
            continue
        for number, line in enumerate(content.decode().splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(REPOSITORY)}:{number}: {line.strip()[:100]}")
    assert found == []


@pytest.mark.parametrize("line", ["cd /srv/corpus", "'/tmp/x'", "open(/root/.ssh)", "(/home/me/text.txt)"])
def test_machine_paths_are_found(line: str) -> None:
    assert MACHINE_PATH.search(line)


@pytest.mark.parametrize(
    "line", ["https://a.org/home/b", "$HOME/tmp/x", "runs/tmp/x", "/dev/null", "and/or", "../data/x"]
)
def test_other_paths_are_left_alone(line: str) -> None:
    assert not MACHINE_PATH.search(line)


def test_nothing_pickled_is_tracked() -> None:
    assert [path for path in tracked() if path.suffix in {".pt", ".pth", ".pkl", ".pickle", ".bin"}] == []
