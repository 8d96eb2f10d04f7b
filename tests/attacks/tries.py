"""What is tried on a model folder: whatever reads one, from Python and by the command.

A try gives an answer, or raises a `PrpnError`, or ends the command with a status; `checked` says what is wrong with
how the command ended.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SENTENCE = "the old man , sat on the bench zyzzyva ."
FORMS = ("tree", "brackets", "labelled", "spans", "jsonl")


@dataclass(frozen=True)
class Kit:
    """A spoiled folder, what kind of model it was, where texts and recipes are, and room to write."""

    folder: Path
    kind: str
    home: Path
    room: Path

    @property
    def text(self) -> Path:
        return self.home / "text.txt"


REFUSED = "refused"
"""What a try of the command gives where it said why not."""


class Wrong(Exception):  # noqa: N818 - not an error of the package
    """An answer that is none, or a message that is not one line."""


Try = Callable[[Kit], object]


def _load(kit: Kit) -> Any:
    import prpn

    return prpn.load(kit.folder)


def _numbers(values: Any) -> None:
    if not np.isfinite(np.asarray(values, dtype=float)).all():
        raise Wrong(f"the answer is {values}")


def _pipe(form: str) -> Try:
    def attempt(kit: Kit) -> None:
        trees = list(_load(kit).pipe([SENTENCE, "", "a man"], form=form))
        if len(trees) != 3:
            raise Wrong(f"{len(trees)} trees of 3 sentences")

    return attempt


def _save(kit: Kit) -> None:
    import prpn

    model = _load(kit)
    model.save(kit.room / "saved")
    prpn.load(kit.room / "saved").parse(SENTENCE)


def _pickle(kit: Kit) -> None:
    model = _load(kit)
    pickle.loads(pickle.dumps(model)).parse(SENTENCE)


def _without_native(attempt: Try) -> Try:
    def run(kit: Kit) -> object:
        os.environ["PRPN_KERNELS"] = "off"
        return attempt(kit)

    return run


def command(*words: str, is_json: bool = False, many_lines: bool = False) -> Try:
    """A command in this process; {model}, {text}, {gold}, {recipe} and {room} are put in."""

    def attempt(kit: Kit) -> object:
        places = {"model": kit.folder, "text": kit.text, "gold": kit.home / "gold.trees", "room": kit.room,
                  "recipe": kit.home / f"{kit.kind}.toml", "sound": kit.home / kit.kind}  # fmt: skip
        status, out, err = run_command([word.format(**places) for word in words], kit.room)
        checked(status, out, err, is_json=is_json, many_lines=many_lines)
        return REFUSED if status else None

    return attempt


def run_command(words: list[str], room: Path) -> tuple[int, str, str]:
    """Status and what was written, by Python or not."""
    from prpn.cli import main

    (room / "empty").write_bytes(b"")
    with (room / "out").open("w+b") as out, (room / "err").open("w+b") as err, (room / "empty").open("rb") as empty:
        for number, file in enumerate((empty, out, err)):
            os.dup2(file.fileno(), number)
        sys.stdin, sys.stdout = io.TextIOWrapper(open(0, "rb", closefd=False)), _text(1)  # noqa: SIM115
        sys.stderr = sys.__stderr__ = _text(2)
        sys.argv = ["prpn", *words]
        try:
            main()
            status: Any = 0
        except SystemExit as exit_:
            status = exit_.code
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(ValueError, OSError):
                stream.flush()
        code = status if isinstance(status, int) else int(status is not None)
        return code, *((room / name).read_bytes().decode(errors="replace") for name in ("out", "err"))


def _text(descriptor: int) -> Any:
    return io.TextIOWrapper(open(descriptor, "wb", closefd=False), "utf-8", line_buffering=True)


def checked(status: int, out: str, err: str, *, is_json: bool = False, many_lines: bool = False) -> None:
    """What a command may leave behind: an answer, or one clear line."""
    if status not in (0, 1, 2):
        raise Wrong(f"status {status}: {err[-300:]}")
    if found := re.search("Traceback|Warning|Error:", err):
        raise Wrong(f"status {status}, {found[0]} in {err[:300]}")
    if status:
        lines = err.splitlines()
        last = lines[-1] if lines else ""
        if not last.startswith("prpn: ") or len(last) > 1000 or (len(lines) > 1 and not many_lines):
            raise Wrong(f"status {status}, {len(lines)} lines: {err[:300]}")
    elif re.search(r"\b(perplexity|character|bits)[\s:]+-?(nan|inf)\b", out):
        raise Wrong(f"the answer is {out[:300]}")
    if is_json and not status:

        def refuse(name: str) -> None:
            raise Wrong(f"{name} in the JSON")

        json.loads(out, parse_constant=refuse)


TRAIN = ("train", "{recipe}", "--text", "{text}")
API: dict[str, Try] = {
    "load": _load,
    "parse": lambda kit: _load(kit).parse(SENTENCE),
    "distances": lambda kit: _numbers(_load(kit).distances(SENTENCE)),
    "perplexity": lambda kit: _numbers(_load(kit).perplexity(SENTENCE)),
    "surprisal": lambda kit: _numbers([each.bits for each in _load(kit).surprisal(SENTENCE)]),
    "generate": lambda kit: _load(kit).generate("the old", 5, seed=1),
    "save": _save,
    "pickle": _pickle,
    **{f"pipe {form}": _pipe(form) for form in FORMS},
}
PARSING: dict[str, Try] = {
    "prpn parse": command("parse", "{text}", "--model", "{model}"),
    "prpn parse jsonl": command("parse", "{text}", "--model", "{model}", "--format", "jsonl"),
    "prpn parse right-leaning": command("parse", "{text}", "--model", "{model}", "--builder", "right-leaning"),
    "prpn evaluate": command("evaluate", "{gold}", "--model", "{model}", "--json", is_json=True),
    "prpn judge": command("judge", "{text}", "--model", "{model}", "--lines", "20", "--json", is_json=True),
}
COMMANDS: dict[str, Try] = {
    **PARSING,
    "prpn info": command("info", "{model}"),
    "prpn info --json": command("info", "{model}", "--json", is_json=True),
    "prpn perplexity": command("perplexity", "{text}", "--model", "{model}", "--json", is_json=True),
    "prpn perplexity --cache": command("perplexity", "{text}", "--model", "{model}", "--cache", "--json", is_json=True),
    "prpn perplexity --tune": command("perplexity", "{text}", "--model", "{model}", "--cache", "--tune"),
    "prpn perplexity --per-token": command("perplexity", "{text}", "--model", "{model}", "--per-token"),
    "prpn perplexity --against": command(
        "perplexity", "{text}", "--model", "{model}", "--against", "{text}", "--json", is_json=True
    ),
    "prpn generate": command("generate", "--model", "{model}", "--tokens", "5", "--seed", "1"),
    "prpn judge --keep": command("judge", "{text}", "--model", "{model}", "--lines", "20", "--keep", many_lines=True),
    "prpn pack": command("pack", "{model}", "--out", "{room}/packed", "--text", "{text}"),
    "prpn distill": command(
        "distill", "--model", "{model}", "--text", "{text}", "--out", "{room}/crowd", "--sentences", "20",
        "--epochs", "1", "--channels", "8", many_lines=True,
    ),
    "prpn temperature": command("temperature", "{text}", "--model", "{model}", "--tau", "1", "--json", is_json=True),
    "prpn boundaries": command("boundaries", "{text}", "--model", "{model}", "--json", is_json=True),
    "prpn train --init": command(*TRAIN, "--init", "{model}", "--out", "{room}/new", "--json", is_json=True),
    "prpn train --resume": command(*TRAIN, "--out", "{model}", "--resume", "--json", is_json=True),
}  # fmt: skip
TRIES: dict[str, Try] = {
    **API,
    **COMMANDS,
    **{f"{name} (PRPN_KERNELS=off)": _without_native(attempt) for name, attempt in (API | COMMANDS).items()},
}
"""By name."""
NATIVE: tuple[str, ...] = (
    "parse", "distances", "pickle", *(name for name in API if name.startswith("pipe")), *PARSING
)  # fmt: skip
"""What ends in the native core's parser."""
RELEVANT = {
    "training": ("prpn train --resume",),
    "metrics": ("prpn train --resume",),
    "cache": ("prpn perplexity --cache",),
    "README": ("prpn info", "prpn pack"),
    "record": ("prpn info --json", "prpn judge", "prpn evaluate"),
    "extra": ("prpn pack",),
    ".x": ("prpn train --resume",),
}
"""What reads a file that hardly anything else reads."""
