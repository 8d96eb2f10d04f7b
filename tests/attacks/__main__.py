"""Attack model folders: `python -m tests.attacks --cases 2000 --seed 1` prints what came of it.

Before that every try must give an answer to a sound folder.

A finding is repeated with `--seed N --case NUMBER`, and `--only 'prpn parse'` for one of the tries.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from itertools import chain
from pathlib import Path

from tests.attacks.driver import Outcome, cases, in_parallel, prepare, unanswered
from tests.attacks.tries import API, COMMANDS, NATIVE


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cases", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--case", type=int, help="this one alone")
    options.add_argument("--only", action="append", default=[], help="this try alone; again for more")
    options.add_argument("--parsing", action="store_true", help="what ends in the native core's parser alone")
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--show", type=int, default=20, help="findings to print")
    given = options.parse_args()
    names = [*given.only, *(NATIVE if given.parsing else ())]
    began, table, findings, seen = time.monotonic(), Counter[tuple[str, str]](), list[Outcome](), set[int]()
    with tempfile.TemporaryDirectory() as home:
        prepare(Path(home))
        if given.case is not None:
            outcomes = cases(Path(home), given.seed, [given.case], names)
        else:
            outcomes = in_parallel(Path(home), given.seed, given.cases, given.jobs, names)
        for outcome in chain(unanswered(Path(home), names or [*API, *COMMANDS]), outcomes):
            table[outcome.attempt, outcome.kind] += 1
            seen |= {outcome.case} - {-1}
            if not outcome.is_sound:
                findings.append(outcome)
                print(f"case {outcome.case}, {outcome.attempt}: {outcome.kind}", file=sys.stderr, flush=True)
            if given.case is not None:
                print(outcome.attempt, outcome.kind, outcome.said, outcome.changes)
    kinds = sorted({kind for _, kind in table}, key=["answer", "refusal"].__contains__, reverse=True)
    width = max(len(name) for name, _ in table)
    print(f"{'':{width}}  " + "  ".join(f"{kind:>9}" for kind in kinds))
    for name in dict.fromkeys(sorted(name for name, _ in table)):
        print(f"{name:{width}}  " + "  ".join(f"{table[name, kind]:9}" for kind in kinds))
    sums = [sum(n for (_, each), n in table.items() if each == kind) for kind in kinds]
    print(f"{'all':{width}}  " + "  ".join(f"{n:9}" for n in sums))
    print(f"{len(seen):,} cases, {sum(sums):,} tries, {len(findings):,} findings, {time.monotonic() - began:.0f} s")
    for outcome in findings[: given.show]:
        print(f"\n--seed {given.seed} --case {outcome.case} --only '{outcome.attempt}': {outcome.kind}")
        print("  " + "; ".join(outcome.changes))
        print("  " + outcome.said.strip().replace("\n", "\n  "))
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
