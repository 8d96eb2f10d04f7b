"""How far back each word of a tree reaches, and distances that say the same.

x_t depends on the words l_t, …, t − 1. The paper reads l_t off a tree by two rules (§3): a word that is not the left
most child of any subtree reaches back to its left most sibling; a word that begins a subtree y, to the first word of
y's left most sibling. Where x_t begins several subtrees, only the largest has a sibling to its left, so this one is y.
Left siblings and y have the same parent, which starts with the left most of them. Hence both rules are one: with

    Y_t = the smallest constituent that contains x_{t−1} and x_t          l_t = the first word of Y_t

for t ≥ 1, while x_0 has nothing to its left: l_0 = 0, an empty range. Labels and nodes with one child change nothing.

Distances that encode a tree:

    d_t = height of Y_t, t ≥ 1          d_0 = 1 + height of the tree

where the height of a constituent is the number of branchings on the longest way from it down to a word. d_0 belongs to
a constituent around this sentence and the one before it. Hard gates (τ = ∞, equal distances open) start at

    t' = the last i < t with d_i > d_t, or 0 if there is none             (eq. 22)

Claim: t' = l_t in every tree. Proof: for l_t < i < t the constituent Y_i lies within Y_t, so d_i ≤ d_t; at i = l_t > 0
it contains x_{i−1} also, so it is larger than Y_t and d_i > d_t. For i = 0, d_0 > d_t: nothing before the text opens.

A node with three children or more has equal distances before all of them but the first, so that

- sign(0) = 0 in place of the comparison half-closes the gates there, and there only;
- distances near 0 between any two sibling words (appendix D) would not do: in ((a b) c d) d would reach c only;
- the builder `unbiased` adds constituents there, but it loses none, and every binary tree comes back as it was;
- reaches alone do not tell (a b c) from ((a b) c). Of binary trees no two have the same reaches.

From distances to trees the agreement ends where order decides. The reaches of distances are those of the `unbiased`
tree if and only if no equal distances compete (`has_ties`): among these the first splits, which branches right, whereas
gates that are open at ties branch left. The trees of `paper` have other reaches even without ties: appendix A splits
x_{t'} from all that follows, so x_t reaches back only to min(t' + 1, t − 1), t' being −1 if there is none.

Whatever the distances, the ranges [t', t) are nested or disjoint (appendix C). For if l_s < l_t < s < t, then
d_{l_t} ≤ d_s, as s looks past l_t, and d_s ≤ d_t, as t looks past s: but l_t stopped t, so d_{l_t} > d_t.
"""

from __future__ import annotations

from prpn.trees.families import families
from prpn.trees.from_distances import Distances, as_numbers, outranking
from prpn.trees.tree import Tree


def reach_starts(tree: Tree) -> list[int]:
    """For each word the first position it depends on, l_t, by the two rules; 0 for the first word."""
    spans = tree.spans()
    first_word = [*range(len(tree)), *(start for start, _ in spans)]
    starts = [0] * len(tree)
    for parent, children in families(len(tree), spans):
        for child in children[1:]:
            starts[first_word[child]] = first_word[parent]
    return starts


def distances_of(tree: Tree) -> list[float]:
    """For each word the height of the smallest constituent that contains it and the word before it."""
    spans = tree.spans()
    first_word = [*range(len(tree)), *(start for start, _ in spans)]
    heights = [0] * len(first_word)
    distances = [0.0] * len(tree)
    for parent, children in families(len(tree), spans):
        heights[parent] = max(heights[child] for child in children) + (len(children) > 1)
        for child in children[1:]:
            distances[first_word[child]] = float(heights[parent])
    return [1 + max(distances), *distances[1:]] if distances else []


def reach_starts_from_distances(distances: Distances) -> list[int]:
    """For each word the last position before it with a larger distance, 0 if there is none: where hard gates open."""
    values = as_numbers([f"x_{t}" for t in range(len(distances))], distances)
    _, higher = outranking(values[::-1])  # from right to left, so that equal distances are looked past
    return [max(0, len(values) - 1 - i) for i in reversed(higher)]
