"""What a person sees while a run goes on: a live line in a terminal, a plain line now and then anywhere else."""

from __future__ import annotations

import math
import time
from collections import deque
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

from prpn.training.evaluate import perplexity_of

PLAIN_LINE_SECONDS = 30.0
"""Time between two lines where there is no terminal."""
SMOOTHING = 0.98
"""Weight of the past in the loss shown."""


def duration(seconds: float) -> str:
    """Seconds as people read them: 00:42, 3:07:15, 2 days, 1:00:00."""
    return str(timedelta(seconds=round(min(seconds, 1e13)))).removeprefix("0:")


def loss_text(loss: float, in_characters: bool) -> str:
    """A loss in nats with the figure people compare: perplexity for words, bits for characters."""
    if in_characters:
        return f"loss {loss:.3f}  bits {loss / math.log(2):.3f}"
    return f"loss {loss:.3f}  perplexity {perplexity_of(loss):,.1f}"


class Display:
    """Progress of one run, on standard error."""

    def __init__(self, total_steps: int, in_characters: bool, quiet: bool = False) -> None:
        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        self.total_steps, self.in_characters = total_steps, in_characters
        self._live: Progress | None = None
        self._loss: float | None = None
        self._recent: deque[tuple[float, int, int]] = deque(maxlen=50)  # time, step, tokens
        self._last_line = time.monotonic()

    def __enter__(self) -> Display:
        if self.console.is_terminal:
            self._live = Progress(
                SpinnerColumn(), TextColumn("{task.description}"), BarColumn(None), TaskProgressColumn(),
                console=self.console,
            )  # fmt: skip
            self._task = self._live.add_task("starting", total=self.total_steps)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """A line that stays."""
        self.console.print(text, markup=False, soft_wrap=True)

    def step(self, step: int, epoch: int, tokens: int, loss: float) -> None:
        """Tell that a step is done: its number, all tokens so far, its loss."""
        self._loss = loss if self._loss is None else SMOOTHING * self._loss + (1 - SMOOTHING) * loss
        self._recent.append((time.monotonic(), step, tokens))
        text = f"epoch {epoch + 1}  step {step:,}/{self.total_steps:,}  {loss_text(self._loss, self.in_characters)}"
        if (seconds := self.seconds_a_step()) is not None:
            (start, _, before), (end, _, after) = self._recent[0], self._recent[-1]
            left = seconds * (self.total_steps - step)
            text += f"  {(after - before) / (end - start):,.0f} tokens/s  {duration(left)} left"
        if self._live is not None:
            self._live.update(self._task, completed=step, description=text)
        elif time.monotonic() - self._last_line >= PLAIN_LINE_SECONDS or step == self.total_steps:
            self._last_line = time.monotonic()
            self.say(text)

    def seconds_a_step(self) -> float | None:
        """Time of a step over the last ones; None before there are two."""
        if len(self._recent) < 2:
            return None
        (start, first, _), (end, last, _) = self._recent[0], self._recent[-1]
        return (end - start) / (last - first)
