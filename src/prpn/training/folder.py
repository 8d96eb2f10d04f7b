"""The folder that a model is written into: whether it may be, and what is said if it cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prpn.config import read_saved_recipe
from prpn.errors import InputError, PrpnError
from prpn.models.files import CHECKPOINT, CONFIG, DISTILLED, WEIGHTS
from prpn.text.files import legible

MADE_AT_THE_END = ("record.json", "README.md")
"""By a run that came to its end; each leg takes them away first."""


def make_folder(folder: Path) -> None:
    """Make it, and those above it, if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(str(folder), f"cannot be made ({error.strerror})", "choose another --out") from None


def refuse_used(folder: Path, resume: bool) -> None:
    """Refuse a folder in which a run can neither begin nor go on."""
    if (name := legible(str(folder))) != str(folder):  # safetensors could not read from there
        raise InputError(name, "its name is not UTF-8", "choose another --out")
    if folder.exists() and not folder.is_dir():
        raise InputError(str(folder), "is a file", "give --out a folder")
    present = {name for name in (WEIGHTS, DISTILLED, CHECKPOINT, *MADE_AT_THE_END) if (folder / name).exists()}
    if present & {WEIGHTS, DISTILLED, CHECKPOINT}:
        if CHECKPOINT not in present and present & {DISTILLED, *MADE_AT_THE_END}:
            raise InputError(str(folder), "is finished, its checkpoint gone", "use --init with another --out")
        if not resume:
            raise InputError(str(folder), "already holds a run", "go on with --resume, or choose another --out")
    elif folder.is_dir() and any(folder.iterdir()) and not _is_started_run(folder):
        raise InputError(str(folder), "holds files that are not a run's", "choose another --out")


def require_whole(folder: Path) -> None:
    """Notice that files were taken away while the run went on."""
    for name in (CONFIG, "vocabulary.json", WEIGHTS):
        if not (folder / name).is_file():
            raise InputError(str(folder / name), "was removed while the run went on", "begin again")


@contextmanager
def writable(folder: Path) -> Iterator[None]:
    """Report a failure to write there as one."""
    try:
        yield
    except BrokenPipeError:  # nobody reads the messages any more
        raise
    except OSError as error:
        remedy = "make room and go on with --resume, or choose another --out"
        place = error.filename or folder
        raise InputError(str(place), f"cannot be written ({error.strerror or error})", remedy) from error


def _is_started_run(folder: Path) -> bool:
    """Whether the folder holds a run that was stopped before its first checkpoint."""
    if all(entry.name == "training" or entry.name.endswith(".tmp") for entry in folder.iterdir()):
        return True
    try:
        read_saved_recipe(folder / CONFIG)
    except PrpnError:
        return False
    return True
