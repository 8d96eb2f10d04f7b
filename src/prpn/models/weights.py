"""Arrays of a model folder: safetensors files, opened with care, and whether those of a parsing network agree.

    embedding.weight                (V, E)
    parsing.convolution.weight      (C, E, L + 1 + R)      bias (C,)
    parsing.norm.*                  (C,)
    parsing.heads.weight            (D, K, 1)              bias (D,)

with D distances, of which the first is read, from K channels: all C, or the half that the released form gives to each
of two; and 0 ≤ R ≤ L + R. Whoever multiplies by such arrays without looking, as the native core does, reads beyond
their ends if one of them is shorter than another says.

    # V vocabulary, E embedding, C channels, L look-back, R look-ahead
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from prpn.config import ModelConfig
from prpn.errors import InputError
from prpn.models.files import parse_json, require_regular, shown
from prpn.text.atomic import replacing

Array = NDArray[np.float32]
Shapes = Mapping[str, tuple[int, ...]]
Check = Callable[[Shapes, Mapping[str, Any]], object]
"""Is shown the shapes and the header of a file, and may raise, before a number of it is read."""

PARTS = ("embedding.", "parsing.")
"""How the names of a parsing network's weights begin."""
WIDEST = 10_000
"""Words that a parsing network may see at once; longer sentences are few."""
SCALE = "parsing.distance_scale"
"""Standard deviation of the distances before their activation; 0 before it was measured."""
SMALLEST_SCALE, LARGEST_SCALE = 1e-20, 1e20
"""Of distances: beyond either, dividing by it leaves the range of floats."""
_OF_A_PARSER = frozenset(
    ["embedding.weight", SCALE]
    + [f"parsing.{part}.{kind}" for part in ("convolution", "heads", "norm") for kind in ("weight", "bias")]
    + [f"parsing.norm.{kind}" for kind in ("running_mean", "running_var", "num_batches_tracked")]
)
_NUMBERS = {"F16": "fp16", "F32": "fp32", "F64": "fp64", "I32": "int32", "I64": "int64", "U8": "uint8", "BOOL": "bool"}
_CHECK = "take config.json, vocabulary.json and weights of the same model"


@contextmanager
def opened(path: Path, framework: Literal["numpy", "pt"]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """A safetensors file and the JSON object in its header; whatever is wrong with the file is one error."""
    require_regular(path)
    try:
        with safe_open(path, framework=framework) as file:
            header = parse_json((file.metadata() or {}).get("json", "{}"), path, "was the file edited?")
            if not isinstance(header, dict):
                raise InputError(str(path), "its header holds no JSON object", "was the file edited?")
            for name in file.keys():  # noqa: SIM118 - not a mapping
                kind = file.get_slice(name).get_dtype()
                if kind not in _NUMBERS:
                    known = ", ".join(_NUMBERS.values())
                    raise InputError(str(path), f"{name} holds numbers of type {kind}", f"known are {known}")
            yield file, header
    except (SafetensorError, OSError, OverflowError, MemoryError, RuntimeError) as error:
        cause = " ".join(str(error).split())[:200]
        raise InputError(str(path), f"not a readable safetensors file ({cause})") from None


def shapes_in(file: Any, prefixes: tuple[str, ...] = ("",)) -> dict[str, tuple[int, ...]]:
    """The shapes, by name, of those arrays of an opened file whose names begin so."""
    names = [name for name in file.keys() if name.startswith(prefixes)]  # noqa: SIM118 - not a mapping
    return {name: tuple(file.get_slice(name).get_shape()) for name in names}


def read_arrays(path: Path, check: Check, prefixes: tuple[str, ...] = ("",)) -> tuple[dict[str, Array], dict[str, Any]]:
    """Finite numbers by name, as fp32, of those arrays whose names begin so; and the header."""
    with opened(path, "numpy") as (file, header):
        shapes = shapes_in(file, prefixes)
        check(shapes, header)
        np.empty(sum(map(math.prod, shapes.values())), np.float32)  # safetensors panics where memory has no room
        with np.errstate(over="ignore"):  # what fp32 cannot hold is not finite
            arrays = {name: file.get_tensor(name).astype(np.float32) for name in shapes}
    for name, array in arrays.items():
        require_finite(array, name, str(path))
    return arrays, header


def read_network(path: Path, config: ModelConfig, vocabulary: int) -> dict[str, Array]:
    """The weights of a whole network of this configuration; no other file is read."""
    arrays, _ = read_arrays(path, lambda shapes, _: require_fit(shapes, config, vocabulary, str(path)))
    return arrays


def write_arrays(path: Path, arrays: Mapping[str, Array], header: Mapping[str, Any] | None = None) -> None:
    """Write a safetensors file, replacing an older one in one step."""
    metadata = None if header is None else {"json": json.dumps(header)}
    with replacing(path) as file:
        file.write(save({name: np.asarray(array, order="C") for name, array in arrays.items()}, metadata=metadata))


def require_finite(array: NDArray[Any], name: str, place: str) -> None:
    """Refuse infinity and what is not a number."""
    if not np.isfinite(array).all():
        raise InputError(place, f"{name} holds numbers that are not finite", "did its training diverge?")


def lookahead_in(header: Mapping[str, Any], place: str) -> int:
    """R of a parsing network that learned from others; 0 where the header has none."""
    value = header.get("lookahead", 0)
    if type(value) is not int or value < 0:  # a truth value is no number here
        raise InputError(place, f"its look-ahead is {shown(value)}", "a whole number from 0 on is expected")
    return value


def shapes_of(config: ModelConfig, vocabulary: int) -> dict[str, tuple[int, ...]]:
    """The weights of a whole network, as `model.safetensors` holds them: names and shapes, known without torch.

    V vocabulary, E embedding, H hidden; an outer name of a pair is that of `prpn.model`.
    """
    size, hidden = config.embedding, config.hidden
    shapes: dict[str, tuple[int, ...]] = {"embedding.weight": (vocabulary, size), "decoder.bias": (vocabulary,)}

    def linear(name: str, inputs: int, outputs: int) -> None:
        shapes.update({f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)})

    def norm(name: str, features: int) -> None:
        vectors = ("weight", "bias", "running_mean", "running_var")
        shapes.update({f"{name}.{each}": (features,) for each in vectors} | {f"{name}.num_batches_tracked": ()})

    if not config.tied:
        shapes["decoder.weight"] = (vocabulary, size)
    if config.parsing:
        shapes["parsing.convolution.weight"] = (hidden, size, config.lookback + 1)
        shapes["parsing.convolution.bias"] = (hidden,)
        norm("parsing.norm", hidden)
        shapes["parsing.heads.weight"] = (2, hidden // config.head_groups, 1)
        shapes["parsing.heads.bias"] = (2,)
        shapes[SCALE] = ()
    for layer in range(config.layers):
        name, inputs = f"reading.{layer}", hidden if layer else size
        linear(f"{name}.input_gates", inputs, 4 * hidden)
        linear(f"{name}.hidden_gates", hidden, 4 * hidden)
        for each, features in (("input", 4 * hidden), ("hidden", 4 * hidden), ("cell", hidden)):
            shapes.update({f"{name}.{each}_norm.gain": (features,), f"{name}.{each}_norm.bias": (features,)})
        if config.reading_attention:
            linear(f"{name}.key", inputs + hidden, hidden)
    if config.predict_attention:
        linear("predict.key", hidden, hidden)
    width = hidden * (2 if config.predict_attention else 1)
    for block in range(config.residual_blocks):
        for part in (1, 2):
            linear(f"predict.residual.{block}.linear{part}", width, width)
            norm(f"predict.residual.{block}.norm{part}", width)
    linear("predict.output", width, size)
    norm("predict.output_norm", size)
    return shapes


def parameters_of(config: ModelConfig, vocabulary: int) -> int:
    """How many numbers such a network learns: all but statistics."""
    statistics = ("running_mean", "running_var", "num_batches_tracked", "distance_scale")
    return sum(
        math.prod(shape) for name, shape in shapes_of(config, vocabulary).items() if not name.endswith(statistics)
    )


def require_fit(shapes: Shapes, config: ModelConfig, vocabulary: int, place: str) -> None:
    """Refuse weights that are not those of a network of this configuration, by their names and shapes."""
    expected = shapes_of(config, vocabulary)

    def refuse(cause: str) -> None:
        raise InputError(place, f"weights do not fit the configuration ({cause})", _CHECK)

    for name, shape in expected.items():
        if name not in shapes:
            if name != SCALE:  # not in older files
                refuse(f"no {name}")
        elif shapes[name] != shape:
            refuse(f"{name}: {_written(shapes[name])}, expected {shape}")
    if unexpected := sorted(shapes.keys() - expected.keys()):
        refuse(f"nothing is called {shown(unexpected[0])[1:-1]}")


def _written(shape: tuple[int, ...]) -> str:
    """A shape for a message; one of a stranger may have any number of dimensions."""
    return str(shape) if len(shape) <= 5 else f"{len(shape):,} dimensions"


def require_agreement(
    weights: Mapping[str, Array], vocabulary: int, lookahead: int, lookback: int | None, place: str
) -> None:
    """Refuse arrays that are not those of one parsing network; `lookback` is None where the arrays alone decide it."""
    require_agreeing_shapes(
        {name: array.shape for name, array in weights.items()}, vocabulary, lookahead, lookback, place
    )
    if (weights["parsing.norm.running_var"] < 0).any():
        raise InputError(place, "parsing.norm.running_var holds a variance below 0", _CHECK)
    scale = weights.get(SCALE, np.zeros((), np.float32))
    if not (scale == 0 or SMALLEST_SCALE <= scale <= LARGEST_SCALE):
        raise InputError(place, f"{SCALE} is {scale:g}", _CHECK)


def require_agreeing_shapes(
    shapes: Shapes,
    vocabulary: int,
    lookahead: int,
    lookback: int | None,
    place: str,
    parts: tuple[str, ...] = PARTS,
) -> None:
    """The same by the shapes alone; names that begin with `parts` must be those of a parsing network."""

    def refuse(cause: str) -> None:
        raise InputError(place, cause, _CHECK)

    def expect(name: str, shape: tuple[int, ...]) -> None:
        if (found := shape_of(name)) != shape:
            refuse(f"{name} has shape {_written(found)}, expected {shape}")

    def shape_of(name: str) -> tuple[int, ...]:
        if name not in shapes:
            raise InputError(place, f"no {name} among the weights", "is this a model folder?")
        return shapes[name]

    table, kernel = shape_of("embedding.weight"), shape_of("parsing.convolution.weight")
    if len(table) != 2 or 0 in table:
        refuse(f"embedding.weight has shape {_written(table)}, expected one row a token")
    if table[0] != vocabulary:
        refuse(f"has weights for {table[0]:,} tokens, but the vocabulary holds {vocabulary:,}")
    if len(kernel) != 3 or 0 in kernel or kernel[1] != table[1]:
        refuse(f"parsing.convolution.weight has shape {_written(kernel)} beside embeddings of {table[1]:,} numbers")
    channels, windows = kernel[0], kernel[2]
    if windows > WIDEST or lookahead >= windows or lookback not in (None, windows - 1 - lookahead):
        seen = f"a window of {windows:,} words" + ("" if lookback is None else f", look-back {lookback}")
        refuse(f"parsing.convolution.weight has {seen} and look-ahead {shown(lookahead)}")
    heads = shape_of("parsing.heads.weight")
    if len(heads) != 3 or heads[0] not in (1, 2) or heads[2] != 1 or heads[1] not in (channels, channels / heads[0]):
        refuse(f"parsing.heads.weight has shape {_written(heads)} beside {channels:,} channels")
    expect("parsing.heads.bias", (heads[0],))
    expect("parsing.convolution.bias", (channels,))
    for name in ("weight", "bias", "running_mean", "running_var"):
        expect(f"parsing.norm.{name}", (channels,))
    for name in (SCALE, "parsing.norm.num_batches_tracked"):
        if name in shapes:
            expect(name, ())
    if unexpected := sorted(name for name in shapes if name.startswith(parts) and name not in _OF_A_PARSER):
        refuse(f"nothing is called {shown(unexpected[0])[1:-1]}")
