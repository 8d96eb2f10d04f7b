"""Configuration: what is refused, in which words, and that nothing is lost on the way to JSON and back."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from prpn.config import (
    SECTIONS,
    ModelConfig,
    Recipe,
    TextConfig,
    TrainingConfig,
    recipe_from,
)
from prpn.errors import ConfigError, PrpnError
from prpn.model import PRPN
from prpn.models.files import shown
from tests.refusals import raises_config_error

RECIPE = Recipe("tiny")


# Values that make no sense


@pytest.mark.parametrize(
    ("values", "fragments"),
    [
        ({"layers": 0}, (r"model\.layers = 0", "at least 1")),
        ({"layers": -1}, (r"model\.layers = -1", "at least 1")),
        ({"embedding": 0}, (r"model\.embedding = 0", "at least 1")),
        ({"hidden": 0}, (r"model\.hidden = 0", "at least")),
        ({"memory_slots": 0}, (r"model\.memory_slots = 0", "at least 1")),
        ({"residual_blocks": -1}, (r"model\.residual_blocks = -1", "0 or more")),
        ({"lookback": -1}, (r"model\.lookback = -1", "0 or more")),
        ({"temperature": 0.0}, (r"model\.temperature = 0\.0", "positive", "inf")),
        ({"temperature": -1.0}, (r"model\.temperature = -1\.0", "positive", "inf")),
        ({"temperature": -math.inf}, (r"model\.temperature = -inf", "positive")),
        ({"temperature": math.nan}, (r"model\.temperature", "not a number")),
        ({"dropout_in_out": 1.0}, (r"model\.dropout_in_out = 1\.0", r"\[0, 1\)")),
        ({"dropout_between": 1.5}, (r"model\.dropout_between = 1\.5", r"\[0, 1\)")),
        ({"dropout_recurrent": -0.1}, (r"model\.dropout_recurrent = -0\.1", r"\[0, 1\)")),
        ({"dropout_attention": math.nan}, (r"model\.dropout_attention", "not a number")),
        ({"reading_attention": False, "predict_attention": False}, (r"model\.parsing", r"model\.parsing = false")),
        ({"hidden": 7}, (r"model\.hidden = 7", "released", "even number")),
        ({"flavour": "original"}, (r"model\.flavour = 'original'", "'paper', 'released'")),
        ({"gates": "Hard"}, (r"model\.gates = 'Hard'", "'hard', 'soft'")),
        ({"builder": 3}, (r"model\.builder = 3", "'paper', 'unbiased'")),
        ({"hidden": 4.0}, (r"model\.hidden = 4\.0", "whole number")),
        ({"hidden": True}, (r"model\.hidden = True", "whole number")),
        ({"hidden": "4"}, (r"model\.hidden = '4'", "whole number")),
        ({"tied": 1}, (r"model\.tied = 1", "true or false")),
        ({"temperature": "warm"}, (r"model\.temperature = 'warm'", "a number")),
        ({"temperature": True}, (r"model\.temperature = True", "a number")),
        ({"lookback": None}, (r"model\.lookback = None", "whole number")),
    ],
    ids=str,
)
def test_impossible_models_are_refused(values: dict[str, Any], fragments: tuple[str, ...]) -> None:
    with raises_config_error(*fragments):
        ModelConfig(**values)
    with raises_config_error(*fragments):
        recipe_from({"model": values}, "tiny")


@pytest.mark.parametrize("values", [{"flavour": "paper"}, {"flavour": "released", "parsing": False}], ids=str)
def test_one_unit_cannot_be_layer_normalised(values: dict[str, Any]) -> None:
    """Its deviation from its own mean is 0, and 0/0 in the released form."""
    with raises_config_error(r"model\.hidden = 1", "2"):
        ModelConfig(hidden=1, **values)


@pytest.mark.parametrize(
    "values",
    [
        {"hidden": 7, "flavour": "paper"},
        {"hidden": 7, "parsing": False},
        {"parsing": False, "reading_attention": False, "predict_attention": False},
        {"temperature": math.inf},
        {"dropout_between": 0.999},
        {"lookback": 0, "memory_slots": 1, "residual_blocks": 0, "layers": 1, "embedding": 1, "hidden": 2},
    ],
    ids=str,
)
def test_unusual_models_are_accepted(values: dict[str, Any]) -> None:
    assert recipe_from({"model": values}, "tiny").model == ModelConfig(**values)


@pytest.mark.parametrize("size", [0, -1])
def test_an_empty_vocabulary_is_refused(size: int) -> None:
    with raises_config_error("vocabulary is empty", r"text\.minimum_count"):
        PRPN(ModelConfig(embedding=2, hidden=2), size)


@pytest.mark.parametrize(
    ("values", "fragments"),
    [
        ({"minimum_count": 0}, (r"text\.minimum_count", "at least 1")),
        ({"maximum_size": 2}, (r"text\.maximum_size = 2", "3 or more", "0 for no limit")),
        ({"maximum_size": -5}, (r"text\.maximum_size = -5", "0 for no limit")),
        ({"held_out": 0.0}, (r"text\.held_out", "between 0 and 1")),
        ({"held_out": 1.0}, (r"text\.held_out", "between 0 and 1")),
        ({"tokenizer": "words"}, (r"text\.tokenizer = 'words'", "'unicode'", "'penn'")),
        ({"corpus": 3}, (r"text\.corpus = 3", "expected text")),
        ({"digits": False}, (r"text\.digits = False", "'keep', 'N', 'number'")),
        ({"digits": "number", "tokenizer": "characters"}, ("text.digits = number", "write N")),
    ],
    ids=str,
)
def test_impossible_text_is_refused(values: dict[str, Any], fragments: tuple[str, ...]) -> None:
    with raises_config_error(*fragments):
        TextConfig(**values)


@pytest.mark.parametrize(
    ("values", "fragments"),
    [
        ({"epochs": 0}, ("training.epochs or training.steps",)),
        ({"epochs": -1}, (r"training\.epochs = -1", "0 or more")),
        ({"batch_size": 0}, (r"training\.batch_size", "at least 1")),
        ({"bptt": 0}, (r"training\.bptt", "at least 1")),
        ({"checkpoint_every": 0}, (r"training\.checkpoint_every", "at least 1")),
        ({"learning_rate": 0.0}, (r"training\.learning_rate = 0\.0", "positive")),
        ({"epsilon": -1e-9}, (r"training\.epsilon", "positive")),
        ({"beta1": 1.0}, (r"training\.beta1 = 1\.0", r"\[0, 1\)")),
        ({"beta2": -0.5}, (r"training\.beta2", r"\[0, 1\)")),
        ({"average": 1.0}, (r"training\.average = 1\.0", r"\[0, 1\)")),
        ({"clip": -1.0}, (r"training\.clip = -1\.0", "0 or more")),
        ({"seed": -1}, (r"training\.seed = -1", "0 or more")),
        ({"schedule": "one-cycle", "warmup_steps": 9}, (r"training\.warmup_steps", "30 %")),
        ({"bptt_jitter": 1.0}, (r"training\.bptt_jitter", "share")),
        ({"plateau_factor": 1.0}, (r"training\.plateau_factor", "between 0 and 1")),
        ({"cosine_floor": 1.1}, (r"training\.cosine_floor", r"\[0, 1\]")),
        ({"schedule": "linear"}, (r"training\.schedule = 'linear'", "'plateau', 'cosine', 'one-cycle', 'constant'")),
        ({"random_offset": "yes"}, (r"training\.random_offset = 'yes'", "true or false")),
        ({"weight_decay": math.nan}, (r"training\.weight_decay", "not a number")),
    ],
    ids=str,
)
def test_impossible_training_is_refused(values: dict[str, Any], fragments: tuple[str, ...]) -> None:
    with raises_config_error(*fragments):
        TrainingConfig(**{"epochs": 1, **values})


def test_a_run_without_an_end_is_refused_and_either_budget_is_one() -> None:
    with raises_config_error("a run needs an end", r"training\.epochs or training\.steps"):
        TrainingConfig()
    assert TrainingConfig(epochs=3).steps == 0
    assert TrainingConfig(steps=3).epochs == 0


# Unknown names


@pytest.mark.parametrize(
    ("values", "fragments"),
    [
        ({"model": {"hiden": 4}}, (r"unknown key model\.hiden", r"did you mean hidden\?")),
        ({"model": {"temprature": 1.0}}, (r"unknown key model\.temprature", r"did you mean temperature\?")),
        ({"training": {"epoch": 1}}, (r"unknown key training\.epoch", r"did you mean epochs\?")),
        ({"text": {"lower_case": True}}, (r"unknown key text\.lower_case", r"did you mean lowercase\?")),
        ({"text": {"xyzzy": 1}}, (r"unknown key text\.xyzzy", "known: corpus, tokenizer")),
        ({"modle": {}}, ("unknown section modle", r"did you mean model\?")),
        ({"optimizer": 1}, ("unknown section optimizer", "known: name, description, text, model, training")),
        ({"model": 3}, ("model must be a section", "3")),
        ({"training": [1]}, ("training must be a section", r"\[1\]")),
    ],
    ids=str,
)
def test_an_unknown_name_is_answered_with_the_nearest(values: dict[str, Any], fragments: tuple[str, ...]) -> None:
    with raises_config_error(*fragments):
        recipe_from(values, "tiny")


# Overrides


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("model.temperature=5", 5.0),
        ("model.temperature=2.5", 2.5),
        ("model.temperature=inf", math.inf),
        ('model.temperature="inf"', math.inf),
        ("model.temperature = 1e3", 1000.0),
        (" model.hidden=8 ", 8),
        ("model.tied=false", False),
        ("model.flavour=paper", "paper"),
        ('model.flavour="paper"', "paper"),
        ("training.clip=0", 0.0),
        ("training.learning_rate=1", 1.0),
        ("training.steps=1_000", 1000),
        ("text.corpus=my-corpus.v2", "my-corpus.v2"),
        ("text.corpus=a=b", "a=b"),
        ("text.corpus=", ""),
    ],
)
def test_an_override_sets_its_key_in_its_type(assignment: str, expected: object) -> None:
    section, key = assignment.partition("=")[0].strip().split(".")
    changed = RECIPE.override([assignment])
    value = getattr(getattr(changed, section), key)
    assert value == expected
    assert type(value) is type(expected)
    replaced = dataclasses.replace(getattr(RECIPE, section), **{key: expected})
    assert changed == dataclasses.replace(RECIPE, **{section: replaced})


def test_overrides_apply_in_order_and_together() -> None:
    changed = RECIPE.override(["model.hidden=7", "model.flavour=paper", "training.epochs=2", "training.epochs=3"])
    assert (changed.model.hidden, changed.training.epochs, changed.name) == (7, 3, "tiny")
    assert RECIPE.override([]) == RECIPE


@pytest.mark.parametrize(
    ("assignment", "fragments"),
    [
        ("model.hidden", ("--set model.hidden", r"section\.key=value", r"training\.epochs=5")),
        ("hidden=4", ("--set hidden=4", r"section\.key=value")),
        ("model.=4", ("--set model.=4", r"section\.key=value")),
        ("", (r"section\.key=value",)),
        ("modle.hidden=4", ("modle.hidden", "unknown section", r"did you mean model\?")),
        (".hidden=4", ("unknown section", "known: text, model, training")),
        ("name.hidden=4", ("unknown section", "known: text, model, training")),
        ("model.hiden=4", (r"model\.hiden", r"did you mean hidden\?")),
        ("model.hidden=four", (r"model\.hidden = 'four'", "whole number")),
        ("model.hidden=4.5", (r"model\.hidden = 4\.5", "whole number")),
        ("model.tied=1", (r"model\.tied = 1", "true or false")),
        ("model.tied=True", (r"model\.tied = 'True'", "true or false")),
        ("model.temperature=nan", (r"model\.temperature", "not a number")),
        ("model.temperature=0", (r"model\.temperature = 0\.0", "positive")),
        ("model.temperature=true", (r"model\.temperature = True", "a number")),
        ("model.layers=[2]", (r"model\.layers = \[2\]", "whole number")),
        ("training.epochs=0", ("a run needs an end",)),
        pytest.param("model.hidden=1" + 5000 * "0", ("model.hidden = '1000", "whole number"), id="model.hidden=1000…"),
    ],
)
def test_a_wrong_override_is_refused(assignment: str, fragments: tuple[str, ...]) -> None:
    with raises_config_error(*fragments):
        RECIPE.override([assignment])


# To a file and back


def values_of(kind: type) -> st.SearchStrategy[dict[str, Any]]:
    """Some fields of a section with values of their type, which need not make sense together."""
    strategies: dict[str, st.SearchStrategy[Any]] = {}
    for key, expected in get_type_hints(kind).items():
        if get_origin(expected) is Literal:
            strategies[key] = st.sampled_from(get_args(expected))
        else:
            strategies[key] = {
                bool: st.booleans(),
                int: st.integers(0, 2000),
                float: st.floats(0, 1) | st.floats(0) | st.just(math.inf),
                str: st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
            }[expected]
    return st.fixed_dictionaries({}, optional=strategies)


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    text, model, training = (
        draw(values_of(kind).map(lambda values, kind=kind: made(kind, values)))
        for kind in (TextConfig, ModelConfig, TrainingConfig)
    )
    if training.batching == "sentences":
        text = dataclasses.replace(text, line_ends=True)
    name = draw(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\\\0"), min_size=1, max_size=9))
    assume(name not in (".", ".."))
    return Recipe(name, draw(st.sampled_from(["", "Straße — τ = ∞", 'a "quoted"\nline'])), text, model, training)


def made(kind: type, values: dict[str, Any]) -> Any:
    """The section with those of the values, one after the other, that it accepts."""
    section = kind(epochs=1) if kind is TrainingConfig else kind()
    for key, value in values.items():
        try:
            section = dataclasses.replace(section, **{key: value})
        except ConfigError:
            continue
    return section


@given(recipes())
def test_nothing_is_lost_in_json(recipe: Recipe) -> None:
    text = json.dumps(recipe.to_json(), allow_nan=False)  # standard JSON, infinity written as text
    assert recipe_from(json.loads(text), "another name") == recipe


@given(recipes())
def test_an_override_with_its_own_values_changes_nothing(recipe: Recipe) -> None:
    own = [
        f"{section}.{key}={json.dumps(value, ensure_ascii=True)}"
        for section in ("text", "model", "training")
        for key, value in recipe.to_json()[section].items()
        if key != "corpus"  # JSON escapes some characters as TOML does not
    ]
    assert recipe.override(own) == recipe


def test_errors_are_the_users_to_mend() -> None:
    assert issubclass(ConfigError, PrpnError)
    with pytest.raises(dataclasses.FrozenInstanceError):
        RECIPE.model.hidden = 3  # type: ignore[misc]


@pytest.mark.parametrize("name", ["", ".", "..", "/", "../../esc", "a\\b", "a\0b", 3, ["x"]])
def test_a_name_that_no_folder_can_have_is_refused(name: Any) -> None:
    with raises_config_error("name = ", "expected text" if not isinstance(name, str) else "not a path"):
        recipe_from({"name": name}, "tiny")


def test_a_description_is_text() -> None:
    with raises_config_error(r"description = \['x'\]: expected text"):
        recipe_from({"description": ["x"]}, "tiny")


def numbers_of(expected: type) -> list[tuple[str, str]]:
    return [
        (section, key)
        for section, kind in SECTIONS.items()
        for key, each in get_type_hints(kind).items()
        if each is expected and key != "seed"
    ]


@pytest.mark.parametrize(("section", "key"), numbers_of(int))
@pytest.mark.parametrize("value", [2**31, 10**400], ids=["2^31", "10^400"])
def test_a_whole_number_out_of_range_is_refused(section: str, key: str, value: int) -> None:
    with raises_config_error(rf"{section}\.{key} = {shown(value)}: give at most 2,147,483,647"):
        recipe_from({section: {key: value}}, "tiny")


@pytest.mark.parametrize(("section", "key"), numbers_of(float))
@pytest.mark.parametrize("value", [10**400, -(10**400)], ids=["10^400", "-10^400"])
def test_a_number_out_of_range_is_refused(section: str, key: str, value: int) -> None:
    with raises_config_error(rf"{section}\.{key} is more than numbers can hold"):
        recipe_from({section: {key: value}}, "tiny")


def test_sentences_need_line_ends() -> None:
    text, training = TextConfig(line_ends=False), TrainingConfig(epochs=1, batching="sentences")
    with raises_config_error("training.batching = sentences", "text.line_ends = true"):
        Recipe("mine", text=text, training=training)
    assert Recipe("mine", training=training).training.batching == "sentences"
