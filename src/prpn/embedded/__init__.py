"""Models that come with the package, each a folder as `prpn train` and `prpn distill` make it, by its name.

a model = a folder that the user has, or the name of a folder here; without either, the folder `DEFAULT` here
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

from prpn.errors import InputError

DEFAULT = "english"
CONFIG = "config.json"
"""The file that makes a folder a model folder."""


def embedded_models() -> list[str]:
    """The names of the models that come with the package."""
    return sorted(path.parent.name for path in _home().glob(f"*/{CONFIG}"))


def model_folder(model: str | Path | None = None) -> Path:
    """Where a model is; a folder of the user's comes before a model of the same name here, if it is named."""
    if model is None:
        return _home() / DEFAULT
    folder = Path(model)
    if (folder / CONFIG).is_file():
        return folder
    if str(model) in embedded_models():
        return _home() / model
    known = ", ".join(embedded_models())
    raise InputError(
        str(model), f"not a model folder (no {CONFIG})", f"train one with `prpn train`, or name one of: {known}"
    )


def is_embedded(folder: Path) -> bool:
    """Whether a model's folder is one of the package's own."""
    return folder.resolve().parent == _home().resolve()


def held_out_loss(model: str | Path) -> float | None:
    """The loss by which a model's weights were chosen, as the record in its folder has it."""
    record = model_folder(model) / "record.json"
    try:
        loss = json.loads(record.read_bytes())["validation"]["loss"]
    except (OSError, ValueError, KeyError, TypeError):  # none there, or not one that `prpn train` wrote
        return None
    return float(loss)


def _home() -> Path:
    return Path(str(resources.files("prpn") / "embedded"))
