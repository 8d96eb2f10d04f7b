"""Cases one after the other, each try in a process of its own that is forked from this one, and watched.

A try ends well with an answer or a `PrpnError`. It is a finding if it raises anything else, is ended by a signal, takes
longer than `SECONDS`, or needs more than `MEMORY` beyond what this process has, in which a sound folder was loaded.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.attacks import sound
from tests.attacks.mutations import spoil
from tests.attacks.tries import REFUSED, RELEVANT, TRIES, Kit, Try, Wrong

SECONDS = 20
"""Of a processor that a try may take."""
PATIENCE = 60
"""Seconds by the clock: a machine may have other work, but who waits for a pipe waits for ever."""
MEMORY = 1 << 30
ADDRESSES = 6 << 30
"""More than that is not asked for without need: an allocation beyond it fails, on any machine."""
TRIES_A_CASE = 2


@dataclass(frozen=True)
class Outcome:
    """How a try on a case ended: an answer, a refusal, or a finding, and what was said."""

    case: int
    attempt: str
    kind: str
    said: str
    changes: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Whether it is as it should be."""
        return self.kind in ("answer", "refusal")


def prepare(home: Path) -> None:
    """Make sound folders, and load what tries need, so that a fork finds it done."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["PRPN_CACHE"] = str(home / "cache")
    if child := os.fork():  # gradients are followed in another process: after them this one could not be forked
        _, status = os.waitpid(child, 0)
        if status:
            raise RuntimeError("no sound folders")
    else:
        _in_child(lambda: sound.make(home))
    import torch

    torch.set_num_threads(1)
    import prpn.cli
    import prpn.demo
    import prpn.distillation
    import prpn.embedded.pack
    import prpn.language.boundaries
    import prpn.language.minimal_pairs
    import prpn.report.console
    import prpn.training.run
    import prpn.trees.evaluation
    import prpn.trees.judgement

    prpn.load(home / "stream").perplexity("the old man")
    prpn.load(home / "stream").parse("the old man")


def kinds(home: Path) -> list[str]:
    """The sound folders."""
    return sorted(path.parent.name for path in home.glob("*/config.json"))


def cases(home: Path, seed: int, numbers: Sequence[int], names: Sequence[str] = ()) -> Iterator[Outcome]:
    """Every try on these cases; those called `names` alone if any are given."""
    for number in numbers:
        draw = random.Random(f"{seed} {number}")
        with tempfile.TemporaryDirectory(dir=home) as room:
            kind = draw.choice(kinds(home))
            spoiled = Path(room) / "spoiled"
            shutil.copytree(home / kind, spoiled)
            changes = (kind, *spoil(draw, spoiled))
            known = [name for name in (names or TRIES) if name in TRIES]
            wanted = [each for part, them in RELEVANT.items() for each in them if any(part in c for c in changes[1:])]
            likely = [each for each in dict.fromkeys(wanted) if each in known][:2]
            for name in dict.fromkeys([*likely, *draw.sample(known, min(TRIES_A_CASE, len(known)))]):
                with tempfile.TemporaryDirectory(dir=room) as own:
                    folder = Path(own) / "model"
                    shutil.copytree(home / kind, folder)
                    again = random.Random(f"{seed} {number}")
                    again.choice(kinds(home))
                    spoil(again, folder)
                    yield watched(number, name, TRIES[name], Kit(folder, kind, home, Path(own)), changes)


def unanswered(home: Path, names: Sequence[str] = ()) -> Iterator[Outcome]:
    """Tries that no sound folder gives an answer to: what is always refused is not tried at all."""
    for name in names or TRIES:
        for kind in ("stream", "characters"):
            with tempfile.TemporaryDirectory(dir=home) as own:
                shutil.copytree(home / kind, Path(own) / "model")
                outcome = watched(-1, name, TRIES[name], Kit(Path(own) / "model", kind, home, Path(own)))
            if outcome.kind == "answer":
                break
        else:
            yield Outcome(-1, name, "unanswered", f"{outcome.kind}: {outcome.said}", ("sound folders",))


def watched(number: int, name: str, attempt: Try, kit: Kit, changes: tuple[str, ...] = ()) -> Outcome:
    """A try in a process of its own."""
    from prpn.errors import PrpnError

    reader, writer = os.pipe()
    before = _resident()
    if not (child := os.fork()):
        os.close(reader)

        def tell(kind: str, said: str) -> None:
            os.write(writer, f"{kind}\n{said[:3000]}".encode(errors="replace"))

        def work() -> None:
            limit = _addresses() + ADDRESSES
            if "asan" not in os.environ.get("LD_PRELOAD", ""):
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                refused = attempt(kit) is REFUSED
            except PrpnError as error:
                text = str(error)
                sound = "\n" not in text and len(text) <= 1000
                tell("refusal" if sound else "unclear", text)
            except Wrong as error:
                tell("wrong", str(error))
            except BaseException:
                tell("exception", traceback.format_exc()[-2500:])
            else:
                tell("refusal" if refused else "answer", "")

        _in_child(work)
    os.close(writer)
    with os.fdopen(reader, "rb") as told:
        kind, _, said = told.read().decode(errors="replace").partition("\n")
    _, status, usage = os.wait4(child, 0)
    if os.WIFSIGNALED(status):
        ended = os.WTERMSIG(status)
        kind = "hang" if ended in (signal.SIGALRM, signal.SIGPROF) else "signal"
        said = signal.Signals(ended).name
    elif not kind:
        kind, said = "exit", f"status {os.waitstatus_to_exitcode(status)}"
    elif usage.ru_maxrss * 1024 - before > MEMORY:
        kind, said = "memory", f"{(usage.ru_maxrss * 1024 - before) / 2**30:.1f} GiB; {kind}: {said}"
    return Outcome(number, name, kind, said, changes)


def _in_child(work: object) -> None:
    """Do it and end, whatever happens, without what this process would do at its end."""
    status = 1
    try:
        work()  # type: ignore[operator]
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _addresses() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def in_parallel(home: Path, seed: int, count: int, jobs: int, names: Sequence[str] = ()) -> Iterator[Outcome]:
    """The same as `cases`, by several processes; in the order in which they are done."""
    import pickle

    readers, workers = [], []
    for job in range(jobs):
        reader, writer = os.pipe()
        if not (worker := os.fork()):
            os.close(reader)

            def work(job: int = job, writer: int = writer) -> None:
                with os.fdopen(writer, "wb") as file:
                    for outcome in cases(home, seed, range(job, count, jobs), names):
                        pickle.dump(outcome, file)
                        file.flush()

            _in_child(work)
        os.close(writer)
        readers.append(os.fdopen(reader, "rb"))
        workers.append(worker)
    import select

    open_ = list(readers)
    while open_:
        for file in select.select(open_, [], [], 1.0)[0]:
            try:
                yield pickle.load(file)
            except EOFError:
                open_.remove(file)
                file.close()
        time.sleep(0)
    for worker in workers:
        os.waitpid(worker, 0)
    sys.stdout.flush()
