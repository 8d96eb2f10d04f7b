from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for what hypothesis draws."""
    return tmp_path_factory.mktemp("drawn") / "drawn.trees"
