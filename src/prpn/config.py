"""What a run is: three frozen dataclasses, read from a TOML recipe, written to config.json.

    recipe = [text] how characters become tokens
           + [model] the network, in the paper's terms
           + [training] how its weights are found

A recipe sets fields; a flag (`--set section.key=value`) overrides one. Every value is checked when the dataclass is
made, so nothing downstream needs to ask whether a configuration makes sense. The line below a field says what it does
wherever that is said: `prpn.report.recipes` reads it from here.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from prpn.errors import ConfigError, InputError
from prpn.models.files import read_json, read_text, shown
from prpn.text.atomic import replacing
from prpn.text.files import legible

Builder = Literal["paper", "unbiased", "right-leaning", "left-leaning"]
"""How distances become a tree: `prpn.trees.from_distances` has the mathematics."""


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise ConfigError(sentence)


@dataclass(frozen=True)
class TextConfig:
    """How text becomes tokens; saved with the model so that later text is treated as the training text was."""

    corpus: str = ""
    """Embedded corpus to train on when no text is given; empty: text must be given."""
    tokenizer: Literal["unicode", "penn", "characters", "none"] = "unicode"
    """How lines are split: `unicode` (any language with spaces), `penn` (English), `characters`, `none` (spaces)."""
    lowercase: bool = False
    """Whether words are read in lower case."""
    digits: Literal["keep", "N", "number"] = "keep"
    """`keep` leaves them, `N` writes each run of digits as one `N`, `number` each word that is a number (1,000)."""
    line_ends: bool = True
    """Whether each line is closed by `</s>`; false where a line end means nothing (text8)."""
    blank_lines: bool = False
    """Whether a line without tokens is still closed by `</s>`, as in WikiText's counts; false skips it."""
    minimum_count: int = 1
    """How often a word must be seen to be known; 1: once."""
    maximum_size: int = 0
    """Largest vocabulary in tokens, special ones included; 0: no limit."""
    unknown_classes: int = 0
    """Classes of unknown words, by capitals, digits, hyphens and endings; 0: one `<unk>` for all."""
    held_out: float = 0.05
    """Share of the text, from its end, kept for validation when no validation file is given."""

    def __post_init__(self) -> None:
        _check_types(self, "text")
        _require(self.minimum_count >= 1, "text.minimum_count must be at least 1: a word is known once it was seen")
        _require(
            self.maximum_size == 0 or self.maximum_size >= 3,
            f"text.maximum_size = {self.maximum_size} leaves an empty vocabulary; give 3 or more, or 0 for no limit",
        )
        _require(self.unknown_classes >= 0, f"text.unknown_classes = {self.unknown_classes}: give 0 or more")
        _require(
            self.unknown_classes == 0 or self.tokenizer != "characters",
            "text.unknown_classes are of words: characters have none",
        )
        _require(
            self.digits != "number" or self.tokenizer != "characters",
            "text.digits = number writes words: among characters write N",
        )
        _require(0 < self.held_out < 1, "text.held_out is a share of the text: give a number between 0 and 1")


@dataclass(frozen=True)
class ModelConfig:
    """The network in the paper's terms; `flavour` says whose equations hold where paper and released code differ."""

    flavour: Literal["paper", "released"] = "released"
    """Whose equations hold where the paper and the authors' released code differ (docs/paper.md)."""
    embedding: int = 200
    """Numbers that stand for a token, before the first layer and after the last."""
    hidden: int = 400
    """Units of each recurrent layer; even in the released flavour."""
    layers: int = 2
    """Recurrent layers of the reading network."""
    residual_blocks: int = 0
    """Residual blocks of the predict network, between its attention and its output; 0: none."""
    tied: bool = True
    """Whether the decoder shares its weights with the embedding."""
    lookback: int = 5
    """L: the parsing convolution sees L + 1 tokens."""
    temperature: float = 10.0
    """τ: sharpness of the gates, up to inf (hard 0/1 gates)."""
    memory_slots: int = 15
    """N_m: how many past states can be read, in tokens."""
    gates: Literal["hard", "soft"] = "hard"
    """`hard` is piecewise linear (hardtanh), `soft` its smooth counterpart."""
    parsing: bool = True
    """Whether distances steer the gates; false: every state in memory can be read alike, and there are no trees."""
    reading_attention: bool = True
    """Whether the recurrent layers read their past; false: LSTMs with layer normalisation."""
    predict_attention: bool = True
    """Whether the prediction looks at past states again; false: at the present one alone."""
    dropout_in_out: float = 0.0
    """Share of units dropped where tokens enter and where features leave for the decoder."""
    dropout_between: float = 0.0
    """Share dropped between layers, in the parsing and in the predict network."""
    dropout_recurrent: float = 0.0
    """Share dropped of the state that a step goes on from, the same units for a chunk."""
    dropout_attention: float = 0.0
    """Share of attention weights dropped."""
    dropout_weights: float = 0.0
    """Share of the recurrent gates' weights dropped, the same for a chunk (Merity et al. 2018)."""
    dropout_locked: bool = False
    """Whether in-out and between dropout of layers leave out the same units at every step of a chunk."""
    builder: Builder = "paper"
    """How distances become a tree unless the user says otherwise (docs/evaluation.md)."""

    def __post_init__(self) -> None:
        _check_types(self, "model")
        _require(self.hidden >= 2, f"model.hidden = {self.hidden}: layer normalisation needs at least 2 units")
        for name in ("embedding", "layers", "memory_slots"):
            _require(getattr(self, name) >= 1, f"model.{name} = {getattr(self, name)}: a network needs at least 1")
        for name in ("residual_blocks", "lookback"):
            _require(getattr(self, name) >= 0, f"model.{name} = {getattr(self, name)}: give 0 or more")
        for name, most in (("layers", 100), ("residual_blocks", 100), ("lookback", 1000), ("memory_slots", 1000)):
            _require(getattr(self, name) <= most, f"model.{name} = {getattr(self, name)}: give at most {most:,}")
        _require(
            self.temperature > 0,
            f"model.temperature = {self.temperature}: τ is positive (inf for hard 0/1 gates); 0 would halve every gate",
        )
        _require(
            self.temperature <= 1e38 or self.temperature == math.inf,
            f"model.temperature = {self.temperature:g} is more than numbers can hold; write inf for hard 0/1 gates",
        )
        for name in ("in_out", "between", "recurrent", "attention", "weights"):
            rate = getattr(self, f"dropout_{name}")
            _require(0 <= rate < 1, f"model.dropout_{name} = {rate}: a dropout rate lies in [0, 1)")
        _require(
            not self.parsing or self.reading_attention or self.predict_attention,
            "model.parsing is on but both attentions are off: the distances would steer nothing; "
            "set model.parsing = false for a plain LSTM",
        )
        _require(
            self.flavour == "paper" or not self.parsing or self.hidden % 2 == 0,
            f"model.hidden = {self.hidden}: the released flavour reads each distance from one half of the channels; "
            "give an even number",
        )

    @property
    def shape(self) -> ModelConfig:
        """The configuration without what leaves the weights as they are: dropout rates and the tree builder."""
        plain = ModelConfig()
        fields = [f.name for f in dataclasses.fields(self) if f.name.startswith("dropout_") or f.name == "builder"]
        return dataclasses.replace(self, **{name: getattr(plain, name) for name in fields})

    @property
    def head_groups(self) -> int:
        """The released code reads each distance from its own half of the channels, the paper both from all."""
        return 2 if self.flavour == "released" else 1


@dataclass(frozen=True)
class TrainingConfig:
    """How the weights are found. Budgets are steps or epochs, never minutes, so that a run can be repeated."""

    batching: Literal["stream", "sentences"] = "stream"
    """`stream`: the text as one, its state carried on; `sentences`: each line by itself."""
    batch_size: int = 64
    """Streams, or sentences, that are read side by side."""
    bptt: int = 35
    """Time steps back-propagated through at once; sentences are never cut."""
    bptt_jitter: float = 0.0
    """How far, as a share of `bptt`, cuts are moved by chance: chunks are (1 ± jitter) · bptt long."""
    epochs: int = 0
    """Passes over the text; the run ends with whichever budget is spent first. 0: no such limit."""
    steps: int = 0
    """Steps of the optimiser, likewise; 0: no such limit."""
    learning_rate: float = 0.003
    """Adam's step size, before the schedule changes it."""
    beta1: float = 0.0
    """Adam's decay of the mean gradient; 0: the gradient itself, in less memory."""
    beta2: float = 0.999
    """Adam's decay of the mean squared gradient."""
    epsilon: float = 1e-9
    """What Adam adds to the root of that mean."""
    weight_decay: float = 1e-6
    """Times each weight, added to its clipped gradient (L2); 0: none."""
    clip: float = 1.0
    """Largest norm of the gradient over all parameters; 0: no clipping."""
    activity_penalty: float = 0.0
    """Times the mean of h², added to the loss that is minimised (activation regularisation); 0: none."""
    change_penalty: float = 0.0
    """Times the mean of (h_t − h_{t−1})², likewise (temporal activation regularisation); 0: none."""
    schedule: Literal["plateau", "cosine", "one-cycle", "constant"] = "plateau"
    """How the learning rate changes: down at a `plateau`, along a `cosine`, up and down (`one-cycle`), or not."""
    warmup_steps: int = 0
    """Steps in which the learning rate rises to its full value; 0: none."""
    cosine_floor: float = 0.0
    """Share of the learning rate left at the end of the cosine."""
    plateau_factor: float = 0.5
    """What the learning rate is multiplied by at a plateau."""
    plateau_patience: int = 2
    """Bad epochs in a row that are tolerated; the next one lowers the learning rate."""
    plateau_watch: Literal["validation", "training"] = "validation"
    """Whose loss tells a plateau: that of the held-out text or that of the text itself."""
    early_stopping: int = 0
    """Evaluations in a row without a better held-out loss before the run ends; 0: never."""
    evaluate_every: int = 0
    """Steps between evaluations; one is also made at the end of every epoch. 0: only those."""
    checkpoint_every: int = 500
    """Steps between checkpoints; one is also written after every evaluation."""
    average: float = 0.0
    """Decay of the moving average of the weights that is evaluated and kept; 0: the weights themselves."""
    random_offset: bool = True
    """Whether each epoch cuts the stream at a new random place."""
    seed: int = 1
    """Seed of everything random: the same one repeats a run."""

    def __post_init__(self) -> None:
        _check_types(self, "training")
        _require(self.batch_size >= 1, "training.batch_size must be at least 1")
        _require(self.bptt >= 1, "training.bptt must be at least 1")
        for name in (
            "epochs", "steps", "warmup_steps", "plateau_patience", "early_stopping", "evaluate_every", "seed", "clip",
            "weight_decay", "activity_penalty", "change_penalty",
        ):  # fmt: skip
            _require(getattr(self, name) >= 0, f"training.{name} = {getattr(self, name)}: give 0 or more")
        _require(self.epochs > 0 or self.steps > 0, "a run needs an end: set training.epochs or training.steps")
        _require(self.checkpoint_every >= 1, "training.checkpoint_every must be at least 1")
        for name in ("learning_rate", "epsilon"):
            _require(getattr(self, name) > 0, f"training.{name} = {getattr(self, name)}: give a positive number")
        for name in ("beta1", "beta2", "average"):
            _require(0 <= getattr(self, name) < 1, f"training.{name} = {getattr(self, name)}: it lies in [0, 1)")
        _require(0 <= self.bptt_jitter < 1, "training.bptt_jitter is a share of training.bptt in [0, 1)")
        _require(0 < self.plateau_factor < 1, "training.plateau_factor must lie between 0 and 1")
        _require(
            self.schedule != "one-cycle" or self.warmup_steps == 0,
            "training.warmup_steps: the schedule one-cycle has a warm-up of its own, 30 % of the run",
        )
        _require(0 <= self.cosine_floor <= 1, "training.cosine_floor must lie in [0, 1]")


@dataclass(frozen=True)
class Recipe:
    """One experiment: a TOML file with a description and the three sections."""

    name: str
    """What the run's folder is called; left out of a file: the file's name."""
    description: str = ""
    """What it is for, in a line."""
    text: TextConfig = field(default_factory=TextConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=lambda: TrainingConfig(epochs=1))

    def __post_init__(self) -> None:
        for key in ("name", "description"):
            value = getattr(self, key)
            _require(isinstance(value, str), f"{key} = {shown(value)}: expected {_KIND_NAMES[str]}")
        _require(
            self.name not in ("", ".", "..") and not set("/\\\0") & set(self.name),
            f"name = {shown(self.name)}: a run's folder is called so; give the name of a folder, not a path",
        )
        _require(
            self.training.batching == "stream" or self.text.line_ends,
            "training.batching = sentences needs text.line_ends = true: without line ends the text is one sentence",
        )

    def to_json(self) -> dict[str, Any]:
        """The recipe as JSON-ready values; infinity is written as the string `inf`."""

        def plain(value: Any) -> Any:
            return "inf" if isinstance(value, float) and math.isinf(value) else value

        sections = {key: {k: plain(v) for k, v in dataclasses.asdict(getattr(self, key)).items()} for key in SECTIONS}
        return {"name": self.name, "description": self.description, **sections}

    def override(self, assignments: Sequence[str]) -> Recipe:
        """The recipe with other values for some fields, as the command line gives them.

        Args:
            assignments: Such as `training.epochs=5`; later ones win.

        Raises:
            ConfigError: A field does not exist, or its value makes no sense.

        """
        settings: dict[str, Any] = {}
        for assignment in assignments:
            path, equals, text = assignment.partition("=")
            shown = assignment if len(assignment) < 100 else f"{assignment[:100]}…"
            form = "write section.key=value, such as training.epochs=5"
            _require(bool(equals and path.strip().partition(".")[2]), f"--set {shown}: {form}")
            settings[path.strip()] = _value_of(text.strip())
        return self.with_settings(settings)

    def with_settings(self, settings: Mapping[str, Any]) -> Recipe:
        """The recipe with other values for some fields.

        Args:
            settings: Values by name, such as `{"training.epochs": 5}`.

        Raises:
            ConfigError: A field does not exist, or its value makes no sense.

        """
        values: dict[str, Any] = self.to_json()
        for path, value in settings.items():
            section, _, key = str(path).partition(".")
            _require(section in SECTIONS, f"{path}: unknown section{_nearest(section, SECTIONS)}")
            values[section] = {**values[section], key: value}
        return recipe_from(values, self.name)


SECTIONS: dict[str, type] = {"text": TextConfig, "model": ModelConfig, "training": TrainingConfig}


def recipe_names() -> list[str]:
    """The recipes that come with the package."""
    return sorted(entry.name[:-5] for entry in _recipe_folder().iterdir() if entry.name.endswith(".toml"))


def load_recipe(name_or_path: str | Path) -> Recipe:
    """Read a recipe.

    Args:
        name_or_path: Its name in the package, one of `recipe_names()`, or a TOML file.

    Raises:
        ConfigError: There is no such recipe, or it holds what no recipe can.

    """
    path, name_or_path = Path(name_or_path), str(name_or_path)
    if path.suffix == ".toml" or path.is_file():
        if not path.is_file():
            raise ConfigError(f"{path}: no such recipe file; give a TOML file or one of {', '.join(recipe_names())}")
        try:
            text, name = read_text(path, "give a recipe file of a few lines"), legible(path.stem)
        except InputError as error:
            raise ConfigError(str(error)) from None
    elif name_or_path in recipe_names():
        text, name = (_recipe_folder() / f"{name_or_path}.toml").read_text(encoding="utf-8"), name_or_path
    else:
        names = recipe_names()
        raise ConfigError(
            f"no recipe called {name_or_path}{did_you_mean(name_or_path, names)}; known: {', '.join(names)}"
        )
    try:
        return recipe_from(tomllib.loads(text), name)
    except ConfigError as error:
        raise ConfigError(f"{name_or_path}: {error}") from None
    except ValueError as error:  # numbers of thousands of digits included
        raise ConfigError(f"{name_or_path}: not valid TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{name_or_path}: not valid TOML: nested too deep") from None


def recipe_from(values: Mapping[str, Any], name: str) -> Recipe:
    """A recipe from nested plain values, as TOML and JSON give them."""
    known = [f.name for f in dataclasses.fields(Recipe)]
    for key in values:
        if key not in known:
            raise ConfigError(f"unknown section {shown(key)[1:-1]}{_nearest(key, known)}")
    sections = {key: _section(key, values[key]) for key in SECTIONS if key in values}
    return Recipe(name=values.get("name", name), description=values.get("description", ""), **sections)


def save_recipe(recipe: Recipe, path: Path) -> None:
    """Write config.json."""
    with replacing(path) as file:
        file.write((json.dumps(recipe.to_json(), indent=2, ensure_ascii=False) + "\n").encode())


def read_saved_recipe(path: Path) -> Recipe:
    """Read config.json."""
    values = read_json(path)
    try:
        _require(isinstance(values, Mapping), "not a configuration: it must hold sections")
        return recipe_from(values, path.parent.resolve().name)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _section(section: str, values: Any) -> Any:
    _require(isinstance(values, Mapping), f"{section} must be a section of keys, not {shown(values)}")
    kind = SECTIONS[section]
    types = get_type_hints(kind)
    converted = {}
    for key, value in values.items():
        if key not in types:
            raise ConfigError(f"unknown key {section}.{shown(key)[1:-1]}{_nearest(key, list(types))}")
        converted[key] = math.inf if types[key] is float and value == "inf" else value
    return kind(**converted)


def _check_types(config: Any, section: str) -> None:
    for key, expected in get_type_hints(type(config)).items():
        value = getattr(config, key)
        if expected is float and isinstance(value, int) and not isinstance(value, bool):
            try:
                object.__setattr__(config, key, value := float(value))
            except OverflowError:
                raise ConfigError(f"{section}.{key} is more than numbers can hold; give a smaller one") from None
        if get_origin(expected) is Literal:
            choices = get_args(expected)
            _require(
                value in choices, f"{section}.{key} = {shown(value)}: choose one of {', '.join(map(repr, choices))}"
            )
        else:
            fits = isinstance(value, expected) and (expected is bool or not isinstance(value, bool))
            _require(fits, f"{section}.{key} = {shown(value)}: expected {_KIND_NAMES[expected]}")
            if expected is float:
                _require(not math.isnan(value), f"{section}.{key} is not a number")
                _require(key == "temperature" or math.isfinite(value), f"{section}.{key}: give a finite number")
            if expected is int:
                most = _LARGEST if key != "seed" else 2**64 - 1
                _require(abs(value) <= most, f"{section}.{key} = {shown(value)}: give at most {most:,}")


_KIND_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
_LARGEST = 2**31 - 1
"""Of whole numbers but the seed: whatever they count, more of it fits no machine."""


def _value_of(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name as a question, if one is near."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {matches[0]}?" if matches else ""


def _nearest(name: str, known: Iterable[str]) -> str:
    name = name[:100]  # the search takes the square of its length
    return did_you_mean(name, known) or f"; known: {', '.join(known)}"


def _recipe_folder() -> Any:
    return resources.files("prpn") / "recipes"
