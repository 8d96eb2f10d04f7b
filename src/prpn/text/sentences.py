"""Running prose as one sentence a line, whatever its own lines are.

    lines ── joined to paragraphs, which blank lines part ── split by sentencex ──> a line a sentence

A line end within a paragraph is read as a space, or as nothing between two characters of a script
that writes none. The splitting is that of the package sentencex, which knows some 300 languages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prpn.errors import InputError
from prpn.text.files import Piece, Rewritten
from prpn.text.scripts import UNSPACED

LONGEST = 1 << 16
"""Characters of a paragraph that are split at once; of more the last sentence waits for the rest."""


def in_sentences(path: str, language: str = "en") -> Rewritten:
    """The name of a text that is to be read sentence by sentence."""
    try:
        from sentencex import segment
    except ImportError:
        raise InputError("--sentences", "needs the package sentencex", "pip install sentencex") from None

    def split(paragraph: str) -> list[str]:
        found = (" ".join(sentence.split()) for sentence in segment(language, paragraph))
        return [sentence for sentence in found if sentence]

    return Rewritten(path, lambda pieces: sentences(pieces, split))


def sentences(pieces: Iterable[Piece], split: Callable[[str], list[str]]) -> Iterator[str]:
    """The sentences of a text that comes in pieces of lines."""
    held: list[str] = []
    size, line_has_begun = 0, False
    for _, piece, ends_line in pieces:
        if not line_has_begun and ends_line and not piece.strip():
            yield from split("".join(held))
            held, size = [], 0
            continue
        if not line_has_begun:
            held.append(_between(held[-1], piece) if held else "")
        held.append(piece.rstrip() if ends_line else piece)
        line_has_begun = not ends_line
        size += len(piece)
        if size > LONGEST:
            *found, last = _cut("".join(held), split)
            yield from found
            held, size = [last] if last else [], len(last)
    yield from split("".join(held))


def _cut(text: str, split: Callable[[str], list[str]]) -> list[str]:
    """The sentences of a text that goes on, and what is to wait for the rest."""
    *found, last = split(text) or [""]
    if len(last) > LONGEST:  # no end in sight
        whole, _, rest = last.rpartition(" ")
        found, last = [*found, whole or last], rest if whole else ""
    return [*found, last + " " if text[-1].isspace() and last else last]


def _between(before: str, line: str) -> str:
    """What stands for a line end."""
    return "" if UNSPACED.match(before[-1:]) and UNSPACED.match(line.lstrip()[:1]) else " "
