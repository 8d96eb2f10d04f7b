"""The paper's three networks, one file each, and the model that joins them."""

from prpn.model.prpn import PRPN, Output
from prpn.model.state import State

__all__ = ["PRPN", "Output", "State"]
