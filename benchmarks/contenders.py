"""Who is compared: each contender takes a training step as the trainer does, on the same sizes, without dropout.

forward, backward, clipping by norm, fused Adam; the state is carried from step to step
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from benchmarks import step_by_step
from benchmarks.processes import Worker
from benchmarks.sizes import Size
from prpn import kernels
from prpn.config import TrainingConfig
from prpn.model import PRPN, State
from prpn.training.optimizer import Adam
from tests.reference import model as twin

Precision = Literal["fp32", "bf16"]
TWIN, UNTUNED, STEP_BY_STEP = "slow twin", "untuned", "step by step"
"""The equations as they stand, slot by slot (tests/reference); a time step's slots in one tensor, without and with what
makes PyTorch faster: fused Adam and an allocator that keeps what is freed."""


class Learner(ABC):
    """Something that can take training steps on one chunk of drawn tokens."""

    fused = True
    """Whether PyTorch's Adam is the fused one."""
    clips = True
    """Whether gradients are clipped before the optimiser's step."""

    def __init__(self, size: Size) -> None:
        config = TrainingConfig(epochs=1, learning_rate=1e-4)  # drawn tokens: there is nothing to learn
        tokens = torch.randint(size.vocabulary, (2, size.steps, size.batch))
        self.inputs, self.targets = tokens.unbind()
        self.parameters, self.clip = list(self.prepare(size)), config.clip
        self.optimizer = self.adam(config)

    def adam(self, config: TrainingConfig) -> torch.optim.Optimizer:
        """PyTorch's Adam, unless a contender brings its own."""
        betas = config.beta1, config.beta2
        return torch.optim.Adam(
            self.parameters, config.learning_rate, betas, config.epsilon, config.weight_decay, fused=self.fused
        )

    @abstractmethod
    def prepare(self, size: Size) -> Iterable[Tensor]:
        """Make the network and give its parameters."""

    @abstractmethod
    def loss(self) -> Tensor:
        """Mean cross-entropy of the chunk; the state moves on."""

    def step(self) -> float:
        """One training step; its loss."""
        loss = self.loss()
        loss.backward()
        if self.clips:
            clip_grad_norm_(self.parameters, self.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)  # before the next forward pass needs memory
        return loss.item()


class Twin(Learner):
    """The step-by-step formulation written straight from the equations."""

    def prepare(self, size: Size) -> Iterable[Tensor]:
        self.config = size.config
        self.weights = step_by_step.weights_of(PRPN(size.config, size.vocabulary))
        self.state: twin.State | None = None
        return [weight for weight in self.weights.values() if weight.requires_grad]

    def loss(self) -> Tensor:
        tied = {"decoder.weight": self.weights["embedding.weight"]} if self.config.tied else {}
        result = twin.run(self.config, {**self.weights, **tied}, self.inputs, self.state, training=True)
        self.state = result.state.detach()
        self.weights.update(result.statistics)
        return F.cross_entropy(result.logits.flatten(0, 1), self.targets.flatten())


class StepByStep(Learner):
    """The step-by-step formulation with what belongs to a time step in one tensor."""

    def prepare(self, size: Size) -> Iterable[Tensor]:
        self.config = size.config
        self.weights = step_by_step.weights_of(PRPN(size.config, size.vocabulary))
        self.memory: step_by_step.Memory | None = None
        return [weight for weight in self.weights.values() if weight.requires_grad]

    def loss(self) -> Tensor:
        logits, memory = step_by_step.run(self.config, self.weights, self.inputs, self.memory)
        self.memory = memory.detach()
        return F.cross_entropy(logits, self.targets.flatten())


class Untuned(StepByStep):
    """The same with PyTorch's plain Adam."""

    fused = False


class Package(Learner):
    """This package, whatever kernels are in use."""

    clips = False  # its optimiser does

    def prepare(self, size: Size) -> Iterable[Tensor]:
        self.network = PRPN(size.config, size.vocabulary).train()
        self.state: State | None = None
        return self.network.parameters()

    def adam(self, config: TrainingConfig) -> torch.optim.Optimizer:
        return Adam(self.parameters, config)

    def loss(self) -> Tensor:
        output = self.network(self.inputs, self.state)
        self.state = output.state.detach()
        return self.network.loss(output, self.targets)


class Lstm(Learner):
    """torch.nn.LSTM of the same sizes with the same output layers."""

    def prepare(self, size: Size) -> Iterable[Tensor]:
        config = size.config
        self.embedding = nn.Embedding(size.vocabulary, config.embedding)
        self.lstm = nn.LSTM(config.embedding, config.hidden, config.layers)
        self.output = nn.Linear(config.hidden, config.embedding)
        self.decoder = nn.Linear(config.embedding, size.vocabulary)
        if config.tied:
            self.decoder.weight = self.embedding.weight
        self.state: tuple[Tensor, Tensor] | None = None
        return nn.ModuleList([self.embedding, self.lstm, self.output, self.decoder]).parameters()

    def loss(self) -> Tensor:
        outputs, (hidden, cells) = self.lstm(self.embedding(self.inputs), self.state)
        self.state = hidden.detach(), cells.detach()
        logits = self.decoder(torch.tanh(self.output(outputs)))
        return F.cross_entropy(logits.flatten(0, 1), self.targets.flatten())


class LstmBf16(Lstm):
    """The same with products in bf16."""

    def loss(self) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = super().loss()
        assert self.state is not None
        hidden, cells = self.state
        self.state = hidden.float(), cells.float()
        return loss


@dataclass(frozen=True)
class Contender:
    """How a contender works, and in which type its products are."""

    learner: type[Learner]
    precision: Precision = "fp32"
    kernels: str = "autograd"
    usual_allocator: bool = False
    """Needs a process of its own: the C library's allocator is set once for all."""

    @property
    def available(self) -> bool:
        """Whether this machine can run it."""
        with kernels_set(self.kernels):
            return kernels.in_use() == self.kernels

    @property
    def reference(self) -> str:
        """The LSTM of the same type."""
        return f"nn.LSTM {self.precision}"


CONTENDERS = {
    TWIN: Contender(Twin),
    UNTUNED: Contender(Untuned, usual_allocator=True),
    STEP_BY_STEP: Contender(StepByStep),
    "nn.LSTM fp32": Contender(Lstm),
    "nn.LSTM bf16": Contender(LstmBf16, "bf16"),
    "prpn autograd": Contender(Package),
    "prpn PyTorch": Contender(Package, kernels="off"),
    "prpn native fp32": Contender(Package, kernels="fp32"),
    "prpn native bf16": Contender(Package, "bf16", kernels="bf16"),
}


def available_contenders() -> list[str]:
    """Those that this machine can run."""
    return [name for name, contender in CONTENDERS.items() if contender.available]


def fastest_fp32() -> str:
    """This package at its fastest in fp32, here."""
    return "prpn native fp32" if CONTENDERS["prpn native fp32"].available else "prpn PyTorch"


def training_steps(size: Size, names: Iterable[str]) -> dict[str, Callable[[], float]]:
    """A training step of each contender; those that differ in kernels alone share a network."""
    learners: dict[type[Learner], Learner] = {}
    steps: dict[str, Callable[[], float]] = {}
    for name in names:
        contender = CONTENDERS[name]
        if contender.usual_allocator:
            steps[name] = Worker(training_step, contender, size)
            continue
        if contender.learner not in learners:
            learners[contender.learner] = _made(contender, size)
        steps[name] = partial(_step, contender, learners[contender.learner])
    return steps


def training_step(contender: Contender, size: Size) -> Callable[[], float]:
    """A training step of one contender in this process."""
    return partial(_step, contender, _made(contender, size))


def _made(contender: Contender, size: Size) -> Learner:
    torch.manual_seed(1)  # the same tokens and weights for all
    return contender.learner(size)


def _step(contender: Contender, learner: Learner) -> float:
    with kernels_set(contender.kernels):
        return learner.step()


@contextmanager
def kernels_set(choice: str) -> Iterator[None]:
    """`PRPN_KERNELS` for a while."""
    before = os.environ.get("PRPN_KERNELS")
    os.environ["PRPN_KERNELS"] = choice
    try:
        yield
    finally:
        if before is None:
            del os.environ["PRPN_KERNELS"]
        else:
            os.environ["PRPN_KERNELS"] = before
