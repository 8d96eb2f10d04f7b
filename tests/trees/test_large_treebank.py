"""Reading large trees, sound and broken: no limit of depth, and work that grows with the text only."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from prpn.trees.brackets import TOKEN
from tests.trees.test_tree import deep_brackets
from tests.trees.treebank_files import DOGS, assert_answer_or_error, read_one, read_skipping, write

# Size


@pytest.mark.parametrize(("side", "labelled"), [("left", False), ("left", True), ("right", False)])
def test_deep_trees(tmp_path: Path, side: str, labelled: bool) -> None:
    text = deep_brackets(50_000, side)
    if labelled:
        text = TOKEN.sub(lambda token: {"(": "(X ", ")": ")"}.get(token[0], f"(N {token[0]})"), text)
    begun = time.process_time()
    tree = read_one(write(tmp_path / "a", text))
    assert len(tree) == 100_000
    assert tree.depth() == 50_000 + labelled
    assert (tree.constituents[0].label == "X") == labelled
    assert time.process_time() - begun < 10


def test_a_flat_tree_of_a_hundred_thousand_words(tmp_path: Path) -> None:
    text = "(S\n" + "(NN word)\n" * 100_000 + ")"
    begun = time.process_time()
    assert len(read_one(write(tmp_path / "a", text))) == 100_000
    assert time.process_time() - begun < 10


LARGE_DAMAGE = {
    "open": "(" * 100_000,
    "closed": ")" * 100_000,
    "deep, one missing": "(S " * 20_000 + "(NN a)" + ")" * 19_999,
    "deep, one too many": "(S " * 20_000 + "(NN a)" + ")" * 20_001,
    "open, on many lines": "(S\n" * 20_000,
    "each lacks its last": f"{DOGS[:-1]}\n" * 20_000,
    "all but one lack their last": f"{DOGS}\n" + f"{DOGS[:-1]}\n" * 5_000,
    "first too few, then too many": f"{DOGS[:-1]}\n" * 2_000 + f"{DOGS})\n" * 2_001,
    "too few and too many in turns": f"{DOGS}\n" + f"{DOGS[:-1]}\n{DOGS})\n" * 2_000,
    "steps": "(S (NN a) \n" * 5_000 + ")\n" * 5_000 + f"\n{DOGS}\n)",
    "words": "word " * 100_000,
    "lines of words": "word\n" * 20_000,
    "flat and open": "(S " + "(NN a) " * 20_000,
    "nothing in brackets": "(" + "() " * 50_000 + ")",
    "one tag for all": "(S (NN " + "word " * 100_000 + "))",
    "NUL lines": "\0\n" * 20_000,
    "NUL lines in a tree": "(S\n" + "\0\n" * 20_000 + ")",
    "deep around trees": "( " * 50_000 + "\n" + "(S (NN a))\n" * 5_000 + ")" * 50_001,
}


@pytest.mark.parametrize("name", LARGE_DAMAGE)
def test_large_damage_is_found_in_seconds(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "a", LARGE_DAMAGE[name])
    begun = time.process_time()
    assert_answer_or_error(path, labelled=True)
    assert time.process_time() - begun < 10


def test_each_of_many_broken_trees_is_counted(tmp_path: Path) -> None:
    lines = [DOGS[:-1] if i % 2 else DOGS for i in range(2_000)]
    found, broken = read_skipping(write(tmp_path / "a", "\n".join(lines)))
    assert len(found) == len(broken) == 1_000
    lines[0] = DOGS[:-1]
    found, broken = read_skipping(write(tmp_path / "a", "\n".join(lines)))
    assert (len(found), len(broken)) == (999, 1_001)


def test_work_grows_with_the_text_only(tmp_path: Path) -> None:
    def steps(text: str) -> int:
        path, count, before = write(tmp_path / "a", text), 0, sys.gettrace()

        def trace(frame: object, event: str, argument: object) -> Callable[..., object]:
            nonlocal count
            count += 1
            return trace

        sys.settrace(trace)
        try:
            read_skipping(path)
        finally:
            sys.settrace(before)
        return count

    for line in [DOGS, DOGS[:-1], DOGS + ")", f"(S {DOGS}\n{DOGS}"]:
        small, large = (steps(f"{DOGS}\n" + f"{line}\n" * size) for size in (100, 1_000))
        assert large < 11 * small
