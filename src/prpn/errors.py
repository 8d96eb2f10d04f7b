"""Errors a user can mend: one sentence each, naming the place, the cause and the remedy.

The command line shows them as a single line; anything else that escapes is a defect of ours.
"""


class PrpnError(ValueError):
    """Base of every error that is the user's to mend, not the program's."""


class InterruptedRunError(PrpnError):
    """A run that was asked to stop; its checkpoint is written."""


class InputError(PrpnError):
    """A file or stream that cannot be used."""

    def __init__(self, place: str, cause: str, remedy: str = "") -> None:
        super().__init__(f"{place}: {cause}" + (f"; {remedy}" if remedy else ""))


class ConfigError(PrpnError):
    """A configuration with an unknown key or an impossible value."""
