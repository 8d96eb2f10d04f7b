"""Words and punctuation in any language that writes spaces, from Unicode's character categories alone.

A chunk (what stands between two spaces) is read as a sequence of word characters and marks, where marks are Unicode's
punctuation (P*) and symbols (S*), and combining or invisible characters (M*, Cf) belong to what they follow. Then

    marks join a word    when single, between two word characters, and one that words are written with:
                         don't  well-known  www.x.com  3.14  AT&T  km/h  12:30; a comma only between digits: 1,000
    a final period       stays with short letters separated by periods: U.S.  e.g.  z.B.  Ph.D.
    every other mark     is a token of its own, a run of the same mark a single one: ...  --  !!!

No list of words is used, so `Mr.` becomes `Mr .` everywhere; the `penn` tokenizer knows English.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple
from unicodedata import category

_JOINERS = frozenset(".'’-‐‑_&@/:·״׳")
_NUMBER_JOINERS = frozenset(",٫٬")
_LETTERS = r"[^\W\d_]"
_DOTTED_LETTERS = re.compile(rf"{_LETTERS}{{1,2}}(?:\.{_LETTERS}{{1,2}})+")


class _Unit(NamedTuple):
    """One character with the combining ones after it."""

    text: str
    is_mark: bool


def split_chunk(chunk: str) -> list[str]:
    """Split a chunk without white space; the tokens joined together are the chunk again."""
    if chunk.isalnum():
        return [chunk]
    tokens: list[str] = []
    units = _units(chunk)
    position = 0
    while position < len(units):
        end = position + 1
        if units[position].is_mark:
            while end < len(units) and units[end] == units[position]:
                end += 1
        else:
            while end < len(units) and (not units[end].is_mark or _joins(units, end)):
                end += 1
        token = "".join(unit.text for unit in units[position:end])
        if end < len(units) and units[end].text == "." and _DOTTED_LETTERS.fullmatch(token):
            token, end = token + ".", end + 1
        tokens.append(token)
        position = end
    return tokens


def _units(chunk: str) -> list[_Unit]:
    units: list[_Unit] = []
    for kind, characters in groupby(chunk, _kind):
        if kind == "extends" and units:
            units[-1] = _Unit(units[-1].text + "".join(characters), units[-1].is_mark)
        else:
            units.extend(_Unit(character, kind == "mark") for character in characters)
    return units


@lru_cache(maxsize=1 << 12)
def _kind(character: str) -> str:
    name = category(character)
    return "mark" if name[0] in "PS" else "extends" if name[0] == "M" or name == "Cf" else "word"


def _joins(units: list[_Unit], position: int) -> bool:
    if position + 1 == len(units) or units[position - 1].is_mark or units[position + 1].is_mark:
        return False
    mark = units[position].text
    between_digits = units[position - 1].text.isdigit() and units[position + 1].text.isdigit()
    return mark in _JOINERS or (mark in _NUMBER_JOINERS and between_digits)
