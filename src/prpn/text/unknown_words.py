"""Classes of words that a model does not know, by what they look like.

    <unk:capital:ing>      signs, then the ending: the last three, two, one or no letters, in lower case
    signs                  number    a digit in it
                           hyphen    a hyphen within
                           capital   begins with one        capitals   all its letters are, two at least
    order of a word's classes: the longest ending first, the plain `<unk>` last

Which endings there are, the text says: of all classes of its rare words the most frequent are told apart, so that no
language is assumed. A word belongs to the first of its classes that the vocabulary has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

PREFIX = "<unk:"
LONGEST_ENDING = 3
SHORTEST_STEM = 2
"""Characters that an ending leaves at least."""


def classes_of(word: str) -> Iterator[str]:
    """The classes of a word, the narrowest first; not `<unk>` itself."""
    letters = [character for character in word if character.isalpha()]
    signs = [
        name
        for name, holds in (
            ("number", any(map(str.isdigit, word))),
            ("hyphen", "-" in word[1:-1]),
            ("capitals", len(letters) > 1 and all(map(str.isupper, letters))),
            ("capital", word[:1].isupper()),
        )
        if holds
    ]
    if "capitals" in signs and "capital" in signs:
        signs.remove("capital")
    start = PREFIX + "+".join(signs)
    for length in range(min(LONGEST_ENDING, len(word) - SHORTEST_STEM), 0, -1):
        if word[-length:].isalpha():
            yield f"{start}:{word[-length:].lower()}>"
    if signs:
        yield f"{start}>"


def frequent_classes(rare: Mapping[str, int], most: int) -> list[str]:
    """The classes that rare words, given with their counts, belong to most often; of equals by code point order."""
    counts: Counter[str] = Counter()
    for word, count in rare.items():
        for each in classes_of(word):
            counts[each] += count
    return sorted(counts, key=lambda each: (-counts[each], each))[:most]
