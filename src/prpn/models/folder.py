"""Where a model is: a folder that the user has, or one that comes with the package, by its name.

Without either, the embedded model `DEFAULT`.
"""

from __future__ import annotations

import math
from importlib import resources
from os import PathLike
from pathlib import Path

from prpn.errors import InputError
from prpn.models.files import CONFIG, RECORD, read_json

DEFAULT = "english"


def embedded_models() -> list[str]:
    """The names of the models that come with the package."""
    return sorted(path.parent.name for path in _home().glob(f"*/{CONFIG}"))


def model_folder(model: str | Path | None = None) -> Path:
    """Where a model is; a folder of the user's comes before a model of the same name here, if it is named."""
    if model is None:
        return _home() / DEFAULT
    if not isinstance(model, str | PathLike):
        raise InputError("model", f"is of type {type(model).__name__}", "give a folder, or the name of a model")
    folder = Path(model)
    try:
        if (folder / CONFIG).is_file():
            return folder
        is_within = folder.is_file() and (folder.parent / CONFIG).is_file()
    except (OSError, ValueError):  # no name that a file could have
        is_within = False
    if str(model) in embedded_models():
        return _home() / model
    if is_within:
        raise InputError(str(model), "is a file in a model folder", f"name the folder: {folder.parent}")
    known = ", ".join(embedded_models())
    raise InputError(
        str(model), f"not a model folder (no {CONFIG})", f"train one with `prpn train`, or name one of: {known}"
    )


def is_embedded(folder: Path) -> bool:
    """Whether a model's folder is one of the package's own."""
    return folder.resolve().parent == _home().resolve()


def held_out_loss(model: str | Path) -> float | None:
    """The loss by which a model's weights were chosen, as the record in its folder has it."""
    try:
        loss = float(read_json(model_folder(model) / RECORD)["validation"]["loss"])
    except (InputError, KeyError, TypeError, ValueError, OverflowError):  # not one that `prpn train` wrote
        return None
    return loss if math.isfinite(loss) else None


def _home() -> Path:
    return Path(str(resources.files("prpn") / "embedded"))
