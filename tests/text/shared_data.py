"""Where the larger corpora are, on machines that have them; tests that use them skip elsewhere."""

from pathlib import Path

import pytest

_FOLDER = Path(__file__).parents[3] / "shared" / "data"


def shared(name: str) -> Path:
    path = _FOLDER / name
    if not path.exists():
        pytest.skip(f"the corpus {name} is not on this machine")
    return path
