"""The command in this process."""

from tests.cli.conftest import prpn  # noqa: F401 - a fixture
