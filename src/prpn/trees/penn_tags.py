"""The part-of-speech tags of the Penn Treebank: 36 of words, the rest of everything else."""

from __future__ import annotations

import re

PENN_WORD_TAGS = frozenset(
    (
        "CC", "CD", "DT", "EX", "FW", "IN", "JJ", "JJR", "JJS", "LS", "MD", "NN", "NNS", "NNP", "NNPS", "PDT", "POS",
        "PRP", "PRP$", "RB", "RBR", "RBS", "RP", "SYM", "TO", "UH", "VB", "VBD", "VBG", "VBN", "VBP", "VBZ", "WDT",
        "WP", "WP$", "WRB",
    )
)  # fmt: skip
EMPTY_TAG = "-NONE-"
"""Tag of a trace or another element that is not spoken."""
PENN_TAGS = PENN_WORD_TAGS | {
    ".", ",", ":", "``", "''", '"', "$", "#", "(", ")", "-LRB-", "-RRB-", EMPTY_TAG, "HYPH", "NFP", "AFX", "ADD", "GW",
    "XX",
}  # fmt: skip


def category(label: str) -> str:
    """Cut grammatical functions and indices off a label: NP-SBJ-1 and NP=2 are NP; -LRB- is itself."""
    return label if label.startswith("-") else re.sub("(?<=.)[-=].*", "", label)
