"""Reading the files of a model folder as data of a stranger: regular files alone, bounded, one clear error.

A name may stand for anything: a link to a device, a pipe that nobody writes to, numbers of a million digits, brackets
nested a million deep. Whatever cannot be read is an `InputError` that names the file.
"""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prpn.errors import InputError

CONFIG = "config.json"
"""The file that makes a folder a model folder."""
VOCABULARY = "vocabulary.json"
WEIGHTS = "model.safetensors"
DISTILLED = "parser.safetensors"
CACHE = "cache.json"
METRICS = "metrics.jsonl"
RECORD = "record.json"
CARD = "README.md"
TRAINING = "training"
CHECKPOINT = "training/checkpoint.safetensors"
LOCK = "training/lock"

LARGEST_TEXT = 1 << 25
"""Bytes of a text file: a vocabulary of two million words has fewer. As JSON, brackets take 24 times their bytes."""
DEEPEST = 100
"""How many lists and objects may lie in each other: what can just be read cannot always be written or shown."""
SHOWN = 60
"""Characters of a value that messages quote."""


def require_regular(path: Path, remedy: str = "is this a model folder?") -> int:
    """The size of a regular file, or of what a link to one leads to; anything else is refused before it is opened."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise InputError(str(path), "no such file", remedy) from None
    except (OSError, ValueError) as error:
        raise InputError(str(path), f"cannot be read ({getattr(error, 'strerror', error)})", remedy) from None
    if not stat.S_ISREG(status.st_mode):
        raise InputError(str(path), "is not a file", remedy)
    return status.st_size


def read_text(path: Path, remedy: str = "is this a model folder?") -> str:
    """A text file, whole."""
    if (size := require_regular(path, remedy)) > LARGEST_TEXT:
        raise InputError(str(path), f"is too large ({size:,} bytes)", remedy)
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(str(path), f"not UTF-8 ({error.reason})", remedy) from None
    except OSError as error:
        raise InputError(str(path), f"cannot be read ({error.strerror})", remedy) from None


def read_json(path: Path, remedy: str = "is this a model folder?") -> Any:
    """What a JSON file holds."""
    return parse_json(read_text(path, remedy), path, remedy)


def parse_json(text: str, path: Path, remedy: str) -> Any:
    """What a JSON text holds; `path` is where it stands."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}", f"not valid JSON ({error.msg})", remedy) from None
    except RecursionError:
        raise InputError(str(path), "not valid JSON (nested too deep)", remedy) from None
    except ValueError as error:  # a number of thousands of digits
        raise InputError(str(path), f"not valid JSON ({error})", remedy) from None
    if _is_deep(value):
        raise InputError(str(path), "not valid JSON (nested too deep)", remedy)
    return value


def shown(value: Any) -> str:
    """A value of a stranger, fit for a message: one line, and a short one, whatever it is."""
    if isinstance(value, list) and len(value) < 5 and not any(isinstance(each, list | dict) for each in value):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value):,}"
    try:
        text = repr(value[:SHOWN] if isinstance(value, str) else value)
    except ValueError:  # a number of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= SHOWN and not (isinstance(value, str) and len(value) > SHOWN) else f"{text[:SHOWN]}…"


def finite(value: Any) -> Any:
    """The same with null for what is not finite: JSON has no word for it."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _is_deep(value: Any) -> bool:
    layer = [value]
    for _ in range(DEEPEST):
        if not (layer := [each for holder in layer for each in _within(holder) if isinstance(each, list | dict)]):
            return False
    return True


def _within(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def make_new_folder(folder: Path) -> Path:
    """Make a folder that is not there yet, or is empty."""
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(str(folder), "is there already", "choose another folder")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(str(folder), f"cannot be made ({error.strerror})", "choose another folder") from None
    return folder
