"""The command in this process."""

from tests.cli.conftest import prpn

command = prpn
