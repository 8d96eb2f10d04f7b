from hypothesis import given

from prpn.trees import Tree
from prpn.trees.families import families
from tests.trees.test_tree import deep_brackets, trees


def families_by_definition(tree: Tree) -> dict[int, list[int]]:
    """The parent of a node is the last constituent before it, in pre-order, that contains it."""
    spans = [(start, end) for start, end, _ in tree.constituents]
    found: dict[int, list[int]] = {len(tree) + i: [] for i in range(len(spans))}
    nodes = [(len(tree) + i, start, end, i) for i, (start, end) in enumerate(spans)]
    nodes += [(word, word, word + 1, len(spans)) for word in range(len(tree))]
    for node, start, end, before in sorted(nodes, key=lambda entry: entry[1]):
        around = [i for i in range(before) if spans[i][0] <= start and end <= spans[i][1]]
        if around:
            found[len(tree) + around[-1]].append(node)
    return found


@given(trees())
def test_as_defined(tree: Tree) -> None:
    listed = list(families(len(tree), [(start, end) for start, end, _ in tree.constituents]))
    assert dict(listed) == families_by_definition(tree)
    assert [node for node, _ in listed] == sorted(dict(listed), reverse=True)


def test_example() -> None:
    assert list(families(3, [(0, 3), (1, 3)])) == [(4, [1, 2]), (3, [0, 4])]
    assert list(families(0, [])) == []


def test_depth_is_no_limit() -> None:
    tree = Tree.from_brackets(deep_brackets(50_000, "right"))
    assert sum(len(children) for _, children in families(len(tree), tree.spans())) == len(tree) + len(tree.spans()) - 1
