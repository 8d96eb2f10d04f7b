"""Before anything else: waiting threads sleep (cores are shared), and hypothesis draws the same examples each time."""

import logging
import os
from collections.abc import Iterator

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read once, when torch is first imported

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "prpn",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("prpn")


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Encoded text goes to a folder of this session, never to the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRPN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    """What a test or a command in it does to the package's logger ends with the test."""
    logger = logging.getLogger("prpn")
    level, handlers = logger.level, logger.handlers[:]
    yield
    logger.setLevel(level)
    logger.handlers[:] = handlers
