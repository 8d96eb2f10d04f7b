"""Errors a user can mend: one sentence each, naming the place, the cause and the remedy.

The command line shows them as a single line; anything else that escapes is a defect of ours.
"""

from __future__ import annotations

from typing import Any


class PrpnError(ValueError):
    """Base of every error that is the user's to mend, not the program's."""


class InterruptedRunError(PrpnError):
    """A run that was asked to stop; its checkpoint is written."""


class InputError(PrpnError):
    """A file, stream or value that cannot be used."""

    def __init__(self, place: str, cause: str, remedy: str = "") -> None:
        """Put its sentence together.

        Args:
            place: What it is about: a file and its line, or the name of an argument.
            cause: What is wrong with it.
            remedy: What would mend it.

        """
        super().__init__(f"{place}: {cause}" + (f"; {remedy}" if remedy else ""))
        self.place, self.cause, self.remedy = place, cause, remedy

    def __reduce__(self) -> tuple[Any, ...]:
        """How other processes get it: from its parts, not from its sentence."""
        return type(self), (self.place, self.cause, self.remedy)


class ConfigError(PrpnError):
    """A configuration with an unknown key or an impossible value."""
