"""What a run of the command left, and what a refusal looks like."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Result(NamedTuple):
    status: int
    out: str
    err: str


Command = Callable[..., Result]


def assert_refused(result: Result, status: int, *fragments: str) -> None:
    """A failure: nothing on standard output, one line on standard error that holds the fragments in order."""
    assert result.status == status, result
    assert result.out == ""
    assert result.err.startswith("prpn: ")
    assert result.err.count("\n") == 1, result.err
    assert result.err.endswith("\n")
    place = 0
    for fragment in fragments:
        assert fragment in result.err[place:], (fragment, result.err)
        place = result.err.index(fragment, place)
