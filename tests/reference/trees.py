"""The tree builders as the paper's appendix A states them, by recursion: a word is a string, a constituent a list.

    paper       x  →  [ x_{<i}, [ x_i, x_{>i} ] ]       unbiased    x  →  [ x_{<i}, x_{≥i} ]

with i the first maximum of the distances in the part at hand; quadratic, and as deep as the tree.

The leaning builders are `unbiased` with other distances. A gap has the distance of the word that opens what follows it,
or of the word that closes what precedes it, half of it and half of the larger one of it and the one of the gap just
before (or after) it; less ¾ for each word before (or after) the gap.
"""

from __future__ import annotations

from collections.abc import Iterator

Nested = str | list["Nested"]


def paper(words: list[str], distances: list[float]) -> Nested:
    if len(words) == 1:
        return words[0]
    i = distances.index(max(distances))
    right: Nested = words[i]
    if words[i + 1 :]:
        right = [words[i], paper(words[i + 1 :], distances[i + 1 :])]
    return [paper(words[:i], distances[:i]), right] if i > 0 else right


def unbiased(words: list[str], distances: list[float]) -> Nested:
    if len(words) == 1:
        return words[0]
    inner = distances[1:]  # the gap before a part lies outside of it
    i = 1 + inner.index(max(inner))
    return [unbiased(words[:i], distances[:i]), unbiased(words[i:], distances[i:])]


def right_leaning(words: list[str], distances: list[float]) -> Nested:
    leant = [0.0]
    for i in range(1, len(words)):
        neighbour = distances[i - 1] if i > 1 else distances[i]
        leant.append((distances[i] + max(distances[i], neighbour)) / 2 - 0.75 * i)
    return unbiased(words, leant)


def left_leaning(words: list[str], distances: list[float]) -> Nested:
    closing = [0.0, *distances[1:2], *distances[1:-1]]  # before each word the distance of the one before it
    leant = [0.0]
    for i in range(1, len(words)):
        neighbour = closing[i + 1] if i < len(words) - 1 else closing[i]
        leant.append((closing[i] + max(closing[i], neighbour)) / 2 - 0.75 * (len(words) - i))
    return unbiased(words, leant)


def at_marks_first(words: list[str], distances: list[float], marks: str) -> Nested:
    """`unbiased`, but a gap beside a mark is split before any other."""
    if len(words) == 1:
        return words[0]
    beside = [i for i in range(1, len(words)) if words[i] in marks or words[i - 1] in marks]
    i = max(beside or range(1, len(words)), key=lambda gap: distances[gap])
    parts = (words[:i], distances[:i]), (words[i:], distances[i:])
    return [at_marks_first(*part, marks) for part in parts]


def brackets(tree: Nested) -> str:
    def inside(part: Nested) -> str:
        return part if isinstance(part, str) else f"({' '.join(map(inside, part))})"

    return inside(tree) if isinstance(tree, list) else f"({tree})"


def binary_trees(words: list[str]) -> Iterator[Nested]:
    """All binary trees over the words."""
    if len(words) == 1:
        yield words[0]
    for i in range(1, len(words)):
        for left in binary_trees(words[:i]):
            for right in binary_trees(words[i:]):
                yield [left, right]


def height(tree: Nested) -> int:
    return 0 if isinstance(tree, str) else 1 + max(map(height, tree))


def heights_as_distances(tree: Nested) -> list[float]:
    """For each gap the height of the smallest constituent around it; 0 before the first word."""
    if isinstance(tree, str):
        return [0.0]
    first, *rest = map(heights_as_distances, tree)
    return first + [d for part in rest for d in [float(height(tree)), *part[1:]]]
