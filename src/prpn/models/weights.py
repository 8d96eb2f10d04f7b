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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from prpn.errors import InputError
from prpn.models.files import parse_json, require_regular
from prpn.text.atomic import replacing

Array = NDArray[np.float32]

PARTS = ("embedding.", "parsing.")
"""How the names of a parsing network's weights begin."""
SCALE = "parsing.distance_scale"
"""Standard deviation of the distances before their activation; 0 before it was measured."""
SMALLEST_SCALE, LARGEST_SCALE = 1e-20, 1e20
"""Of distances: beyond either, dividing by it leaves the range of floats."""
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
    except (SafetensorError, OSError, OverflowError, MemoryError) as error:
        raise InputError(str(path), f"not a readable safetensors file ({error})") from None


def read_arrays(path: Path, prefixes: tuple[str, ...] = ("",)) -> tuple[dict[str, Array], dict[str, Any]]:
    """Finite numbers by name, as fp32, of those arrays whose names begin so; and the header."""
    with opened(path, "numpy") as (file, header):
        names = [name for name in file.keys() if name.startswith(prefixes)]  # noqa: SIM118
        arrays = {name: file.get_tensor(name).astype(np.float32) for name in names}
    for name, array in arrays.items():
        require_finite(array, name, str(path))
    return arrays, header


def write_arrays(path: Path, arrays: Mapping[str, Array], header: Mapping[str, Any] | None = None) -> None:
    """Write a safetensors file, replacing an older one in one step."""
    metadata = None if header is None else {"json": json.dumps(header)}
    with replacing(path) as file:
        file.write(save({name: array.copy(order="C") for name, array in arrays.items()}, metadata=metadata))


def require_finite(array: NDArray[Any], name: str, place: str) -> None:
    """Refuse infinity and what is not a number."""
    if not np.isfinite(array).all():
        raise InputError(place, f"{name} holds numbers that are not finite", "did its training diverge?")


def lookahead_in(header: Mapping[str, Any], place: str) -> int:
    """R of a parsing network that learned from others; 0 where the header has none."""
    value = header.get("lookahead", 0)
    if type(value) is not int or value < 0:  # a truth value is no number here
        raise InputError(place, f"its look-ahead is {str(value)[:40]!r}", "a whole number from 0 on is expected")
    return value


def require_agreement(
    weights: Mapping[str, Array], vocabulary: int, lookahead: int, lookback: int | None, place: str
) -> None:
    """Refuse arrays that are not those of one parsing network; `lookback` is None where the arrays alone decide it."""

    def refuse(cause: str) -> None:
        raise InputError(place, cause, _CHECK)

    def expect(name: str, shape: tuple[int, ...]) -> None:
        if (found := shape_of(name)) != shape:
            refuse(f"{name} has shape {found}, expected {shape}")

    def shape_of(name: str) -> tuple[int, ...]:
        if name not in weights:
            raise InputError(place, f"no {name} among the weights", "is this a model folder?")
        return weights[name].shape

    table, kernel = shape_of("embedding.weight"), shape_of("parsing.convolution.weight")
    if len(table) != 2 or 0 in table:
        refuse(f"embedding.weight has shape {table}, expected one row a token")
    if table[0] != vocabulary:
        refuse(f"has weights for {table[0]:,} tokens, but the vocabulary holds {vocabulary:,}")
    if len(kernel) != 3 or 0 in kernel or kernel[1] != table[1]:
        refuse(f"parsing.convolution.weight has shape {kernel} beside embeddings of {table[1]:,} numbers")
    channels, windows = kernel[0], kernel[2]
    if lookahead >= windows or lookback not in (None, windows - 1 - lookahead):
        seen = f"a window of {windows} words" + ("" if lookback is None else f", look-back {lookback}")
        refuse(f"parsing.convolution.weight has {seen} and look-ahead {lookahead}")
    heads = shape_of("parsing.heads.weight")
    if len(heads) != 3 or heads[0] not in (1, 2) or heads[2] != 1 or heads[1] not in (channels, channels / heads[0]):
        refuse(f"parsing.heads.weight has shape {heads} beside {channels:,} channels")
    expect("parsing.heads.bias", (heads[0],))
    expect("parsing.convolution.bias", (channels,))
    for name in ("weight", "bias", "running_mean", "running_var"):
        expect(f"parsing.norm.{name}", (channels,))
    if (weights["parsing.norm.running_var"] < 0).any():
        refuse("parsing.norm.running_var holds a variance below 0")
    scale = weights.get(SCALE, np.zeros((), np.float32))
    if scale.shape != () or not (scale == 0 or SMALLEST_SCALE <= scale <= LARGEST_SCALE):
        refuse(f"{SCALE} is {np.array2string(scale, threshold=4)[:40]}")
