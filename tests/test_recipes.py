"""Recipes: the paper's leave nothing to defaults and say who chose each value; every one builds a model that learns."""

import dataclasses
import re
import tomllib
from importlib import resources
from typing import Any

import pytest
import torch

from prpn.config import SECTIONS, load_recipe, recipe_names
from prpn.model import PRPN
from prpn.training.optimizer import Adam

PAPER = ("parsing", "ptb-char", "ptb-word", "text8-char", "text8-word")
OTHERS = (
    "demo",
    "english",
    "large-word",
    "little-text",
    "long-char",
    "long-word",
    "quick-char",
    "quick-parsing",
    "quick-word",
)
VOCABULARY, STEPS, BATCH = 50, 8, 2
ATTRIBUTION = re.compile(r"\w+ = \S+ +# (paper|released code|ours)\b")


def source(name: str) -> str:
    return (resources.files("prpn") / "recipes" / f"{name}.toml").read_text(encoding="utf-8")


def values(name: str) -> dict[str, Any]:
    return tomllib.loads(source(name))


def test_recipes_of_the_package() -> None:
    assert {*PAPER, *OTHERS} <= set(recipe_names())


@pytest.mark.parametrize("name", recipe_names())
def test_says_what_it_is_and_when_it_ends(name: str) -> None:
    recipe = load_recipe(name)
    assert re.fullmatch(r"[A-Z\w].+\.", recipe.description)
    assert {"epochs", "steps"} <= set(values(name)["training"])
    assert "flavour" in values(name)["model"]


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_recipes_set_every_field_and_say_who_chose_it(name: str) -> None:
    for section, kind in SECTIONS.items():
        assert set(values(name)[section]) == {field.name for field in dataclasses.fields(kind)}
    _, *sections = re.split(r"^\[\w+\]$", source(name), flags=re.MULTILINE)
    lines = [line for section in sections for line in section.splitlines() if line]
    assert [line for line in lines if not ATTRIBUTION.match(line)] == []


@pytest.mark.parametrize("name", OTHERS)
def test_other_recipes_leave_defaults_alone(name: str) -> None:
    for section, kind in SECTIONS.items():
        defaults = {field.name: field.default for field in dataclasses.fields(kind)}
        required = {"flavour", "epochs", "steps", "tokenizer"}
        repeated = {key for key, value in values(name)[section].items() if value == defaults[key]} - required
        assert repeated == set()


@pytest.mark.parametrize("name", recipe_names())
def test_takes_two_steps_at_its_own_size(name: str) -> None:
    torch.manual_seed(0)
    recipe = load_recipe(name)
    model = PRPN(recipe.model, VOCABULARY)
    adam = Adam(model.parameters(), recipe.training)
    tokens = torch.randint(VOCABULARY, (STEPS + 1, BATCH))
    mask = None
    if recipe.training.batching == "sentences":
        mask = torch.arange(STEPS)[:, None] < torch.tensor([STEPS, STEPS - 3])
    state = None
    for _ in range(2):
        output = model(tokens[:-1], state, mask)
        loss = model.loss(output, tokens[1:], mask)
        adam.zero_grad()
        loss.backward()
        gradients = [parameter.grad for parameter in model.parameters()]
        assert loss.isfinite()
        assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)
        if recipe.training.clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.training.clip)
        adam.step()
        state = None if mask is not None else output.state.detach()
    assert all(parameter.isfinite().all() for parameter in model.parameters())
