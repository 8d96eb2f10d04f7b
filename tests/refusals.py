"""How a configuration is refused."""

from __future__ import annotations

from typing import Any

import pytest

from prpn.errors import ConfigError


def raises_config_error(*fragments: str) -> Any:
    """A ConfigError of one line that holds every fragment, in this order."""
    return pytest.raises(ConfigError, match="(?s)^[^\n]*" + "[^\n]*".join(fragments) + "[^\n]*$")
