"""Ways to spoil a model folder, each a function of a random generator and the folder that says what it did.

`spoil` draws one or several. Everything follows from the generator, so a seed repeats a case.
"""

from __future__ import annotations

import json
import os
import random
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.attacks.safetensors_file import METADATA, Raw, write_sparse

Mutation = Callable[[random.Random, Path], str]

JSON_FILES = ("config.json", "vocabulary.json", "cache.json", "record.json")
TEXT_FILES = ("README.md", "metrics.jsonl", "training/lock")
CHECKPOINT = "training/checkpoint.safetensors"
ARRAY_FILES = ("model.safetensors", "parser.safetensors", CHECKPOINT)
PARSING = ("embedding.weight", "parsing.convolution.weight", "parsing.convolution.bias", "parsing.heads.weight",
           "parsing.heads.bias", "parsing.norm.weight", "parsing.norm.bias", "parsing.norm.running_mean",
           "parsing.norm.running_var", "parsing.distance_scale")  # fmt: skip

DEEP = 100_000
VALUES: tuple[str, ...] = (
    "0", "-1", "1", "2", "3", "5", "7", "16", "100", "1000", "65536", "2147483647", "2147483648", "4294967296",
    "9223372036854775807", "18446744073709551615", "18446744073709551616", "-9223372036854775808", "1" + "0" * 400,
    "9" * 4000, "9" * 6000, "-" + "9" * 6000, "0.0", "-0.0", "0.5", "1.5", "2.5", "1e-45", "1e-20", "1e30", "1e38",
    "1e300", "1e400", "-1e400", "NaN", "Infinity", "-Infinity", "true", "false", "null", '""', '"inf"', '"nan"',
    '"0"', '"\\ud800"', '"\\u0000"', '"' + "x" * 100_000 + '"', '"a\\nb"', '"\\u001b[2J"', "[]", "{}", "[[]]", "[1]",
    '["a", 1]', '{"a": 1}', '[null, null]', "[" * DEEP + "]" * DEEP, '{"a":' * 900 + "1" + "}" * 900,
    "[" * 400 + "]" * 400, '"../../../../etc/passwd"', '"/dev/zero"',
)  # fmt: skip
NUMBERS = (0.0, -0.0, -1.0, 1e-45, 1e-38, 1e-30, 1e-20, 1e10, 1e20, 1e30, 3.4e38, -3.4e38, np.nan, np.inf, -np.inf)


def spoil(draw: random.Random, folder: Path) -> list[str]:
    """One change, or up to four."""
    count = draw.choice((1, 1, 1, 1, 2, 2, 3, 4))
    return [_applied(draw.choices(list(MUTATIONS), list(MUTATIONS.values()))[0], draw, folder) for _ in range(count)]


def _applied(mutation: Mutation, draw: random.Random, folder: Path) -> str:
    try:
        return mutation(draw, folder)
    except Exception as error:  # what was spoiled before is not what this one can spoil
        return f"{getattr(mutation, '__name__', mutation)} found nothing to spoil ({type(error).__name__})"


def _some(draw: random.Random, folder: Path, names: tuple[str, ...]) -> Path | None:
    """One of the files that is still a file."""
    there = [folder / name for name in names if (folder / name).is_file() and not (folder / name).is_symlink()]
    return draw.choice(there) if there else None


def _short(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder))


class _Literal:
    """A value that is written into JSON as it stands."""

    def __init__(self, text: str) -> None:
        self.text = text


def _dump(value: Any) -> str:
    """JSON in which literals stand as they are."""
    if isinstance(value, _Literal):
        return value.text
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {_dump(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_dump, value)) + "]"
    return json.dumps(value)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container with each of its keys."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        for key, each in value.items():
            found += [(value, key), *_places(each)]
    elif isinstance(value, list):
        for index, each in enumerate(value[:6]):
            found += [(value, index), *_places(each)]
    return found


def _change_one(draw: random.Random, values: Any) -> str:
    """Replace, drop or add a value somewhere."""
    places = _places(values)
    if not places:
        return "nothing to change"
    holder, key = draw.choice(places)
    what = draw.random()
    if what < 0.7:
        text = draw.choice(VALUES)
        holder[key] = _Literal(text)
        return f"{key} = {text[:30]}"
    if what < 0.85:
        del holder[key]
        return f"without {key}"
    text = draw.choice(VALUES)
    name = draw.choice(("unknown", "text", "model", "lookahead", "", "é", "x" * 1000))
    if isinstance(holder, dict):
        holder[name] = _Literal(text)
    else:
        holder.insert(0, _Literal(text))
    return f"with {name[:20]} = {text[:30]}"


def json_value(draw: random.Random, folder: Path) -> str:
    path = _some(draw, folder, JSON_FILES)
    try:
        values = json.loads(path.read_text()) if path else None
    except (ValueError, RecursionError):
        return "not JSON any more"
    if path is None:
        return "no JSON left"
    changed = [_change_one(draw, values) for _ in range(draw.choice((1, 1, 1, 2, 3)))]
    path.write_text(_dump(values))
    return f"{_short(path, folder)}: {', '.join(changed)}"


def json_whole(draw: random.Random, folder: Path) -> str:
    if (path := _some(draw, folder, JSON_FILES)) is None:
        return "no JSON left"
    before = path.read_bytes()
    kinds: dict[str, Callable[[], bytes]] = {
        "empty": lambda: b"",
        "a value": lambda: draw.choice(VALUES).encode(),
        "nested": lambda: b"[" * DEEP,
        "nested objects": lambda: b'{"a":' * DEEP,
        "byte order mark": lambda: b"\xef\xbb\xbf" + before,
        "UTF-16": lambda: before.decode().encode("utf-16"),
        "not UTF-8": lambda: before.replace(b'"', b'"\xff', 3),
        "NUL": lambda: before.replace(b":", b"\0", 2),
        "cut": lambda: before[: draw.randrange(len(before) + 1)],
        "twice": lambda: before + before,
        "double keys": lambda: before.replace(b"{", b'{"tokens": 1, "model": 2, "size": 3, ', 1),
        "a byte": lambda: _flipped(draw, before),
        "spaces": lambda: b" " * 1_000_000 + before,
        "long": lambda: b"[" + b"[]," * 4_000_000 + b"[]]",
    }
    what = draw.choice(list(kinds))
    path.write_bytes(kinds[what]())
    return f"{_short(path, folder)}: {what}"


def json_huge(draw: random.Random, folder: Path) -> str:
    """A file of many gigabytes that takes no space."""
    if (path := _some(draw, folder, JSON_FILES + TEXT_FILES + ARRAY_FILES)) is None:
        return "no file left"
    size = draw.choice((1 << 28, 1 << 31, 1 << 33))
    with path.open("r+b") as file:
        file.truncate(size)
    return f"{_short(path, folder)}: {size:,} bytes"


def text_file(draw: random.Random, folder: Path) -> str:
    path = folder / draw.choice(TEXT_FILES)
    if not path.parent.is_dir() or (path.exists() and not path.is_file()) or path.is_symlink():
        return "not there"
    kinds = {
        "comments": "<!--" * 300_000,
        "comments without ends": "<!-- a\n" * 100_000,
        "one line": "x" * 5_000_000,
        "escapes": "\x1b[2J\x1b]0;title\x07 \r",
        "not UTF-8": b"\xff\xfe\x00",
        "NaN": '{"step": NaN}\n',
        "not JSON": "{\n}\n[",
        "nested": "[" * DEEP,
        "numbers": "9" * 6000 + "\n",
        "empty": "",
        "brackets": "# [a](b)\n" * 50_000 + "<" * 100_000 + "-" * 100_000,
    }
    what = draw.choice(list(kinds))
    content = kinds[what]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return f"{_short(path, folder)}: {what}"


def _flipped(draw: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 10))):
        if changed:
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def other_kind(draw: random.Random, folder: Path) -> str:
    """A file becomes something else."""
    names = [*JSON_FILES, *TEXT_FILES, *ARRAY_FILES, "training", "training/tensorboard", "extra.txt", ".x.tmp"]
    path = folder / draw.choice(names)
    if not path.parent.is_dir():
        return "its folder is gone"
    if path.is_dir() and not path.is_symlink():
        _remove(path)
    path.unlink(missing_ok=True)
    kinds: dict[str, Callable[[], object]] = {
        "gone": lambda: None,
        "empty": lambda: path.write_bytes(b""),
        "/dev/zero": lambda: path.symlink_to("/dev/zero"),
        "/dev/full": lambda: path.symlink_to("/dev/full"),
        "/dev/null": lambda: path.symlink_to("/dev/null"),
        "pipe": lambda: os.mkfifo(path),
        "folder": lambda: path.mkdir(),
        "full folder": lambda: (path.mkdir(), (path / "a").write_text("a")),
        "loop": lambda: path.symlink_to(path),
        "dangling link": lambda: path.symlink_to("nowhere"),
        "link outside": lambda: path.symlink_to("/etc/hostname"),
        "link to the folder": lambda: path.symlink_to(folder),
        "socket": lambda: _socket(path),
        "/proc/self/mem": lambda: path.symlink_to("/proc/self/mem"),
    }
    what = draw.choice(list(kinds))
    kinds[what]()
    return f"{_short(path, folder)}: {what}"


def _remove(path: Path) -> None:
    for each in sorted(path.rglob("*"), reverse=True):
        each.rmdir() if each.is_dir() and not each.is_symlink() else each.unlink()
    path.rmdir()


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket may not be long
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _arrays(draw: random.Random, folder: Path, names: tuple[str, ...] = ARRAY_FILES) -> tuple[Path, Raw] | None:
    path = _some(draw, folder, names)
    try:
        return None if path is None or path.stat().st_size > 1 << 26 else (path, Raw.read(path))
    except Exception:  # spoiled before
        return None


def _rewriting(change: Callable[[random.Random, Raw], str], names: tuple[str, ...] = ARRAY_FILES) -> Mutation:
    def mutation(draw: random.Random, folder: Path) -> str:
        if (found := _arrays(draw, folder, names)) is None:
            return "no arrays left"
        path, raw = found
        said = change(draw, raw)
        raw.write(path)
        return f"{_short(path, folder)}: {said}"

    mutation.__name__ = change.__name__.strip("_")
    return mutation


def _name(draw: random.Random, raw: Raw) -> str:
    """An array, those of the parsing network more often."""
    likely = [name for name in raw.arrays if name.removeprefix("network.") in PARSING]
    return draw.choice(likely if likely and draw.random() < 0.5 else list(raw.arrays))


def _array_shape(draw: random.Random, raw: Raw) -> str:
    """The bytes fit the shape, which is another."""
    name = _name(draw, raw)
    array = raw.array(name)
    shape = list(array.shape)
    changes: dict[str, Callable[[], list[int]]] = {
        "flat": lambda: [array.size],
        "longer by a dimension": lambda: [*shape, 1],
        "first dimension 1": lambda: [1, *shape],
        "reversed": lambda: shape[::-1],
        "without a dimension": lambda: shape[:-1],
    }
    if shape:
        place = draw.randrange(len(shape))
        for size in (0, 1, shape[place] - 1, shape[place] + 1, 2 * shape[place]):
            changes[f"dimension {place} is {size}"] = lambda size=size: [
                *shape[:place], max(0, size), *shape[place + 1 :],
            ]  # fmt: skip
    what = draw.choice(list(changes))
    wanted = changes[what]()
    raw.put(name, np.resize(array, wanted) if array.size else np.zeros(wanted, array.dtype))
    return f"{name} {shape} {what}"


def _array_values(draw: random.Random, raw: Raw) -> str:
    name, number = _name(draw, raw), draw.choice(NUMBERS)
    array = raw.array(name)
    if array.dtype.kind != "f":
        array = np.frombuffer(draw.randbytes(array.nbytes), array.dtype).reshape(array.shape)
        raw.put(name, array)
        return f"{name} random"
    if array.ndim and draw.random() < 0.5:
        array.flat[draw.randrange(array.size)] = number
        raw.put(name, array)
        return f"{name} has {number}"
    with np.errstate(all="ignore"):
        raw.put(name, np.full_like(array, number))
    return f"{name} is {number}"


def _all_values(draw: random.Random, raw: Raw) -> str:
    """Finite weights whose sums and products are not."""
    factor = draw.choice((1e-30, 1e4, 1e10, 1e18, 1e25, 1e30, 1e36))
    for name in list(raw.arrays):
        array = raw.array(name)
        if array.dtype == np.float32 and "state." not in name and "optimizer" not in name:
            with np.errstate(all="ignore"):
                scaled = np.clip(array * np.float32(factor), -3e38, 3e38)
            raw.put(name, scaled.astype(np.float32))
    return f"all weights times {factor}"


def _array_kind(draw: random.Random, raw: Raw) -> str:
    name = _name(draw, raw)
    array = raw.array(name)
    kind = draw.choice(("<f8", "<f2", "<i4", "<i8", "u1", "?", "BF16", "F8_E4M3", "F8_E5M2", "F4", "I16", "C64", "XX"))
    if kind[0] in "<u?":
        with np.errstate(all="ignore"):
            raw.put(name, np.nan_to_num(array).astype(kind))
            if kind == "<f8" and draw.random() < 0.3:
                raw.put(name, np.full(array.shape, 1e300))
    else:
        bits = {"BF16": 2, "I16": 2, "C64": 8}.get(kind, 1)
        raw.arrays[name] = (kind, list(array.shape), bytes(bits * array.size))
    return f"{name} as {kind}"


def _array_names(draw: random.Random, raw: Raw) -> str:
    name, what = _name(draw, raw), draw.randrange(4)
    if what == 0:
        del raw.arrays[name]
        return f"without {name}"
    new = draw.choice((
        "extra", "parsing.extra", "embedding.weight2", "", "optimizer.0.exp_avg", "optimizer.99.exp_avg",
        "optimizer.999999999999.step", "optimizer.-1.step", "optimizer.0.exp_avg_sq.x", "optimizer.0.max_exp_avg_sq",
        "state.hidden", "state.cells", "state.more", "average.x", "random.cpu", "random.cuda", "network.extra",
        "decoder.weight", "x" * 10_000, "\n", "../../x",
    ))  # fmt: skip
    if what == 1:
        raw.arrays[new] = raw.arrays.pop(name)
        return f"{name} called {new[:30]}"
    if what == 2:
        raw.arrays[new] = raw.arrays[name]
        return f"{name} also called {new[:30]}"
    other = _name(draw, raw)
    raw.arrays[name], raw.arrays[other] = raw.arrays[other], raw.arrays[name]
    return f"{name} and {other} swapped"


def _header_value(draw: random.Random, raw: Raw) -> str:
    """What this project keeps in the header."""
    if draw.random() < 0.2:
        raw.metadata["json"] = draw.choice((*VALUES, "{", "[" * DEEP, "\ufeff{}"))
        return f"header is {raw.metadata['json'][:30]}"
    values = raw.json if isinstance(raw.json, dict) else {}
    said = _change_one(draw, values) if values and draw.random() < 0.6 else ""
    if not said:
        text = draw.choice((*VALUES, "20", "18446744073709551615", "-1", "2.5", "true"))
        values["lookahead"] = _Literal(text)
        said = f"lookahead = {text[:30]}"
    raw.metadata["json"] = _dump(values)
    return f"header: {said}"


def _position(draw: random.Random, raw: Raw) -> str:
    """Where a run is, whole numbers most of all."""
    values = raw.json
    if not isinstance(values.get("position"), dict):
        return "no position"
    position = values["position"]
    said = []
    for _ in range(draw.choice((1, 1, 2, 3))):
        holder = position["plateau"] if draw.random() < 0.2 and isinstance(position.get("plateau"), dict) else position
        key = draw.choice(list(holder) or ["step"])
        number = str(draw.choice((0, 1, -5, 3, 7, 10**6, 10**15, 2**63, 10**400, 0.5, 1e300)))
        text = draw.choice((number, draw.choice(VALUES)))
        holder[key] = _Literal(text)
        said.append(f"{key} = {text[:30]}")
    raw.metadata["json"] = _dump(values)
    return f"position: {', '.join(said)}"


def _unlisted(draw: random.Random, raw: Raw) -> str:
    """A checkpoint that does not say which tensors it holds, another of which is spoiled."""
    values = raw.json
    values.pop("tensors", None)
    raw.json = values
    return f"unlisted, {draw.choice((_array_names, _array_shape, _array_values, _array_kind))(draw, raw)}"


def _vocabulary_agreed(draw: random.Random, raw: Raw) -> str:
    """Arrays that agree with each other, not with the vocabulary."""
    name = next((name for name in raw.arrays if name.endswith("embedding.weight")), None)
    if name is None:
        return "no embedding"
    prefix = name.removesuffix("embedding.weight")
    change = draw.choice((-1, 1, 5))
    for each in (name, f"{prefix}decoder.bias", f"{prefix}decoder.weight"):
        if each in raw.arrays:
            array = raw.array(each)
            rows = max(0, len(array) + change)
            raw.put(each, np.resize(array, (rows, *array.shape[1:])))
    return f"{change} tokens"


def _other_network(draw: random.Random, raw: Raw) -> str:
    """A parsing network of other sizes that agrees with itself."""
    if "parsing.convolution.weight" not in raw.arrays:
        return "no parsing network"
    channels, size, windows = raw.array("parsing.convolution.weight").shape
    channels, windows = draw.choice((1, 2, 3, 17, channels)), draw.choice((1, 2, 5, 50, windows))
    zeros = {"convolution.bias": 0, "norm.weight": 1, "norm.bias": 0, "norm.running_mean": 0, "norm.running_var": 1}
    raw.put("parsing.convolution.weight", np.ones((channels, size, windows), np.float32))
    for name, value in zeros.items():
        raw.put(f"parsing.{name}", np.full(channels, value, np.float32))
    raw.put("parsing.heads.weight", np.ones((draw.choice((1, 2, 3)), channels, 1), np.float32))
    return f"{channels} channels, windows {windows}"


def raw_header(draw: random.Random, folder: Path) -> str:
    """What safetensors itself must refuse, or what its checks let through."""
    if (found := _arrays(draw, folder)) is None:
        return "no arrays left"
    path, raw = found
    header, name = raw.header(), _name(draw, raw)
    entry, size = header[name], sum(len(data) for *_, data in raw.arrays.values())
    kinds: dict[str, Callable[[], object]] = {
        "huge shape": lambda: entry.update(shape=[2**40, 2**40]),
        "shape of 2^63": lambda: entry.update(shape=[2**63]),
        "negative shape": lambda: entry.update(shape=[-1]),
        "shape of floats": lambda: entry.update(shape=[1.5]),
        "many dimensions": lambda: entry.update(shape=[*entry["shape"], *[1] * draw.choice((20, 40, 70, 10_000))]),
        "overlap": lambda: entry.update(data_offsets=[0, entry["data_offsets"][1] - entry["data_offsets"][0]]),
        "beyond the end": lambda: entry.update(data_offsets=[size, 2 * size]),
        "backwards": lambda: entry.update(data_offsets=entry["data_offsets"][::-1]),
        "no type": lambda: entry.pop("dtype"),
        "metadata is a list": lambda: header.update({METADATA: [1]}),
        "metadata of numbers": lambda: header.update({METADATA: {"json": 1}}),
        "another key": lambda: entry.update(more=1),
    }
    what = draw.choice([*kinds, "length", "cut", "flipped", "flipped", "flipped header", "text", "long header"])
    if what in kinds:
        kinds[what]()
        raw.write(path, header)
        return f"{_short(path, folder)}: {name} {what}"
    if what == "length":
        length = draw.choice((0, 1, 7, 2**20, 2**31, 2**63 - 1, 2**64 - 1))
        raw.write(path, length=length)
        return f"{_short(path, folder)}: header of {length} bytes"
    content = path.read_bytes()
    changed = {
        "cut": lambda: content[: draw.randrange(len(content))],
        "flipped": lambda: _flipped(draw, content),
        "flipped header": lambda: _flipped(draw, content[:600]) + content[600:],
        "text": lambda: b"not a safetensors file at all, but a text\n" * 10,
        "long header": lambda: (10**6).to_bytes(8, "little") + b"[" * 10**6 + content,
    }[what]()
    path.write_bytes(changed)
    return f"{_short(path, folder)}: {what}"


def sparse_arrays(draw: random.Random, folder: Path) -> str:
    """One array, there before or not, of gigabytes that take no space."""
    if (found := _arrays(draw, folder)) is None:
        return "no arrays left"
    path, raw = found
    shapes = {name: list(shape) for name, (_, shape, _) in raw.arrays.items()}
    name = draw.choice([*shapes, "extra", "parsing.extra"])
    shape = shapes.get(name) or [4]
    shape[draw.randrange(len(shape))] = draw.choice((1 << 29, 1 << 30)) // max(1, int(np.prod(shape)) // shape[0])
    shapes[name] = shape
    write_sparse(path, shapes, raw.metadata)
    return f"{_short(path, folder)}: {name} {shape}, sparse"


def checkpoint_state(draw: random.Random, folder: Path) -> str:
    """What the last batch handed on, moments, and the random generator."""
    if (found := _arrays(draw, folder, (CHECKPOINT,))) is None:
        return "no checkpoint"
    path, raw = found
    parts = ("state.", "optimizer.", "random.", "average.")
    names = [name for name in raw.arrays if name.startswith(draw.choice(parts))] or list(raw.arrays)
    name = draw.choice(names)
    array = raw.array(name)
    kinds: dict[str, Callable[[], np.ndarray]] = {
        "less of the last": lambda: array[..., :1],
        "doubled": lambda: np.concatenate([array, array]) if array.ndim else np.stack([array, array]),
        "flat": lambda: array.reshape(-1),
        "as float64": lambda: array.astype("<f8"),
        "as int64": lambda: np.nan_to_num(array).astype("<i8"),
        "as bytes": lambda: np.nan_to_num(array).astype("u1"),
        "below 0": lambda: -1 - np.abs(np.nan_to_num(array.astype("<f4"))),
        "nothing": lambda: array[:0] if array.ndim else array,
        "infinite": lambda: np.full(array.shape, np.inf, "<f4"),
        "not a number": lambda: np.full(array.shape, np.nan, "<f4"),
        "ones": lambda: np.full(array.shape, -1).astype(array.dtype),
    }
    what = draw.choice([*kinds, "gone", "other index"])
    with np.errstate(all="ignore"):
        if what == "gone":
            del raw.arrays[name]
        elif what == "other index":
            raw.arrays[name.replace(".0.", ".3.").replace(".1.", ".2.")] = raw.arrays.pop(name)
        else:
            raw.put(name, np.ascontiguousarray(kinds[what]()))
    if draw.random() < 0.7:
        values = raw.json
        values["tensors"] = sorted(raw.arrays)
        raw.json = values
    raw.write(path)
    return f"{_short(path, folder)}: {name} {what}"


array_shape, array_values, array_kind = map(_rewriting, (_array_shape, _array_values, _array_kind))
array_names, header_value, all_values = map(_rewriting, (_array_names, _header_value, _all_values))
position, unlisted = (_rewriting(change, (CHECKPOINT,)) for change in (_position, _unlisted))
vocabulary_agreed = _rewriting(_vocabulary_agreed)
other_network = _rewriting(_other_network, ("parser.safetensors", "model.safetensors"))

MUTATIONS: dict[Mutation, int] = {
    json_value: 14, json_whole: 6, json_huge: 2, text_file: 5, other_kind: 14, array_shape: 8, array_values: 9,
    all_values: 5, array_kind: 6, array_names: 6, header_value: 6, position: 6, unlisted: 3, vocabulary_agreed: 2,
    other_network: 3, raw_header: 7, sparse_arrays: 4, checkpoint_state: 8,
}  # fmt: skip
"""How often each is drawn."""
