"""The training loop: read a batch, follow the gradient, look at held-out text, remember the best weights.

A run is a function of recipe, text and seed. All that its next step depends on is in the checkpoint: weights, optimiser
moments, weight average, carried state, random generator, and the `Position`; the batches of an epoch follow from
seed and epoch. So a run that was killed ends with the same weights as one that was not.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from prpn import kernels
from prpn.config import Recipe
from prpn.errors import InputError, InterruptedRunError, PrpnError
from prpn.model import PRPN, State
from prpn.models.files import CHECKPOINT, WEIGHTS, shown
from prpn.models.weights import Shapes
from prpn.text.batches import Batch
from prpn.training.average import WeightAverage
from prpn.training.checkpoint import (
    load_optimizer,
    load_weights,
    moment_of,
    optimizer_tensors,
    read_tensors,
    read_weights,
    require_shape,
    weights_of,
    write_tensors,
)
from prpn.training.data import Data, training_batches
from prpn.training.display import Display, loss_text
from prpn.training.evaluate import ESTIMATE_COLUMNS, on_device, score
from prpn.training.metrics import Metrics, read_metrics
from prpn.training.optimizer import Adam
from prpn.training.penalty import penalty
from prpn.training.position import Position
from prpn.training.schedule import learning_rate
from prpn.training.signals import StopRequest
from prpn.training.watch import TreebankWatch


class Trainer:
    """One run in one model folder."""

    def __init__(
        self, recipe: Recipe, data: Data, network: PRPN, folder: Path, watch: TreebankWatch | None = None
    ) -> None:
        self.recipe, self.config, self.data, self.folder = recipe, recipe.training, data, folder
        self.network, self.device = network, network.decoder.bias.device
        self.optimizer = Adam(network.parameters(), self.config)
        self.average = WeightAverage(network, self.config.average) if self.config.average else None
        self.position = Position()
        self.state: State | None = None
        self.batches_an_epoch = len(training_batches(self.config, data, 0))
        self.metrics = Metrics(folder)
        self.watch = watch
        self.before_writing: Callable[[], object] = lambda: None
        """May raise, so that nothing is written to where it does not belong."""

    @property
    def checkpoint(self) -> Path:
        """Where the state of the run is kept."""
        return self.folder / CHECKPOINT

    @property
    def best_weights(self) -> Path:
        """Where the best weights by held-out loss are kept."""
        return self.folder / WEIGHTS

    @property
    def total_steps(self) -> int:
        """Steps after which the budget is spent."""
        limits = [self.config.steps, self.config.epochs * self.batches_an_epoch]
        return min(limit for limit in limits if limit > 0)

    def run(self, display: Display, stop: StopRequest) -> None:
        """Train until the budget is spent or nothing gets better, then leave the network with the best weights."""
        with stop.heeding():
            while not self.finished:
                epoch = self.position.epoch
                batches = training_batches(self.config, self.data, epoch)
                while self.position.epoch == epoch and not self.finished:
                    self._step(batches[self.position.batch], display)
                    if stop.made:
                        self.save()
                        raise InterruptedRunError(
                            f"stopped at step {self.position.step:,} of {self.total_steps:,}; everything is saved in "
                            f"{self.folder}: go on with --resume"
                        )
        if not math.isfinite(self.position.best_loss):
            raise PrpnError(self._diverged(self.position.step))
        self.before_writing()
        weights = read_weights(self.best_weights, self.recipe.model, len(self.data.vocabulary))
        load_weights(self.network, weights, str(self.best_weights))
        self.network.eval()

    @property
    def finished(self) -> bool:
        """Whether the budget is spent, or the held-out loss has not fallen for long enough."""
        patience = self.config.early_stopping
        return self.position.step >= self.total_steps or 0 < patience <= self.position.without_gain

    def _step(self, batch: Batch, display: Display) -> None:
        """One batch and whatever is due after it."""
        start, position = time.monotonic(), self.position
        loss, tokens = self._learn(batch)
        position.step += 1
        position.batch += 1
        position.tokens += tokens
        position.nats += loss * tokens
        position.nats_tokens += tokens
        position.epoch_nats += loss * tokens
        position.epoch_tokens += tokens
        if self.average is not None:
            self.average.update(position.step - 1)
        epoch_ends = position.batch == self.batches_an_epoch
        every = self.config.evaluate_every
        evaluated = epoch_ends or position.step == self.total_steps or (every > 0 and position.step % every == 0)
        position.seconds += time.monotonic() - start
        display.step(position.step, position.epoch, position.tokens, loss)
        if evaluated:
            held_out = self._evaluate(display)
            if epoch_ends:
                self._end_epoch(held_out)
        if evaluated or position.step % self.config.checkpoint_every == 0:
            self.save()

    def _learn(self, batch: Batch) -> tuple[float, int]:
        """Follow the gradient of one batch; its mean loss and its tokens."""
        inputs, targets, mask = on_device(batch, self.device)
        rate = learning_rate(self.config, self.position.step, self.total_steps, self.position.plateau)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.network.train()
        with kernels.learning():
            output = self.network(inputs, None if batch.fresh else self.state, mask)
            loss = self.network.loss(output, targets, mask)
            (loss + penalty(output.hidden, mask, self.config)).backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)  # before the next forward pass needs memory
        self.state = output.state.detach() if self.config.batching == "stream" else None
        value = loss.item()
        if not math.isfinite(value):
            raise PrpnError(self._diverged(self.position.step + 1))
        return value, targets.numel() if mask is None else int(mask.sum())

    def _diverged(self, step: int) -> str:
        return (
            f"the loss is not a number at step {step:,}; "
            f"lower training.learning_rate ({self.config.learning_rate:g}) or training.clip, "
            "then start again with another --out"
        )

    def _evaluate(self, display: Display) -> float:
        """Estimate the held-out loss, write it down, keep the weights if they are the best."""
        position = self.position
        start = time.monotonic()
        with self.average.in_place() if self.average is not None else nullcontext():
            held_out, vocabulary = self.data.validation, self.data.vocabulary
            estimate = score(self.network, held_out, vocabulary, self.config, columns=ESTIMATE_COLUMNS, diverging=True)
            better = estimate.loss < position.best_loss
            self.before_writing()
            if better:
                write_tensors(self.best_weights, weights_of(self.network))
            trees = self.watch(self.network, self.data.vocabulary) if self.watch is not None else {}
        position.best_loss = min(position.best_loss, estimate.loss)
        position.best_step = position.step if better else position.best_step
        position.without_gain = 0 if better else position.without_gain + 1
        position.seconds += time.monotonic() - start
        position.metrics_size = self.metrics.append(
            {
                "step": position.step,
                "epoch": round(position.step / self.batches_an_epoch, 4),
                "tokens": position.tokens,
                "seconds": round(position.seconds, 1),
                "learning_rate": self.optimizer.param_groups[0]["lr"],
                "training_loss": position.nats / max(1, position.nats_tokens),
                "validation_loss_estimate": estimate.loss,
                "validation_perplexity_estimate": estimate.perplexity,
                "best": better,
                **({"treebank_f1": trees} if trees else {}),
            }
        )
        position.nats, position.nats_tokens = 0.0, 0
        text = loss_text(estimate.loss, display.in_characters)
        seen = "".join(f"; {name} F1 {f1:.1f}" for name, f1 in trees.items())
        display.say(f"step {position.step:,}: held-out {text} (estimate){', the best so far' if better else ''}{seen}")
        return estimate.loss

    def _end_epoch(self, held_out: float) -> None:
        position = self.position
        learned = position.epoch_nats / position.epoch_tokens
        watched = held_out if self.config.plateau_watch == "validation" else learned
        position.plateau = position.plateau.after_epoch(watched, self.config)
        position.epoch, position.batch = position.epoch + 1, 0
        position.epoch_nats, position.epoch_tokens = 0.0, 0

    def save(self) -> None:
        """Write the checkpoint."""
        self.before_writing()
        tensors = {f"network.{name}": tensor for name, tensor in weights_of(self.network).items()}
        tensors |= optimizer_tensors(self.optimizer)
        tensors |= self.average.tensors() if self.average is not None else {}
        tensors |= self.state.tensors("state.") if self.state is not None else {}
        tensors |= {f"random.{kind}": module.get_rng_state() for kind, module in self._generators().items()}
        header = {
            "position": dataclasses.asdict(self.position),
            "identity": self._identity(self.recipe),
            "tensors": sorted(tensors),
        }
        write_tensors(self.checkpoint, tensors, header)

    def resume(self) -> None:
        """Go on from the checkpoint."""
        place = str(self.checkpoint)
        tensors, header = read_tensors(self.checkpoint, self._require_own)
        damaged = "it is damaged: begin again with another --out"
        try:
            self.position = Position.from_json(header.get("position"), self.batches_an_epoch)
        except ValueError as error:
            raise InputError(place, f"its position is none of this run ({error})", damaged) from None
        network = {name[8:]: tensor for name, tensor in tensors.items() if name.startswith("network.")}
        load_weights(self.network, network, place)
        load_optimizer(self.optimizer, tensors, place)
        if self.average is not None:
            self.average.load(tensors, place)
        if "state.hidden" in tensors:
            self.state = self._state(tensors, place)
        for kind, module in self._generators().items():
            state = require_shape(tensors, f"random.{kind}", module.get_rng_state().shape, place)
            try:
                module.set_rng_state(state)
            except (RuntimeError, TypeError) as error:
                raise InputError(place, f"random.{kind} is no state of a generator ({error})", damaged) from None
        self.metrics.cut(self.position.metrics_size)  # later lines will be written again
        if self.position.metrics_size:
            read_metrics(self.folder)

    def _require_own(self, shapes: Shapes, header: Mapping[str, Any]) -> None:
        """Refuse a checkpoint that is not this run's, or holds other tensors than a run writes, before it is read."""
        place, damaged = str(self.checkpoint), "it is damaged: begin again with another --out"
        saved, defaults = header.get("identity"), self._identity(Recipe(self.recipe.name))
        if not isinstance(saved, dict):
            raise InputError(place, "does not say whose run it is", damaged)
        if header.get("tensors", sorted(shapes)) != sorted(shapes):
            raise InputError(place, "holds other tensors than were written", damaged)
        for name, here in self._identity(self.recipe).items():
            # A run of an older version does not know newer fields: it was made with what is now their default.
            # Of newer entries it says nothing.
            there = saved.get(name, here)
            if isinstance(here, dict) and isinstance(there, dict):
                there = {**defaults[name], **there}
            if there != here:
                raise InputError(
                    place,
                    f"belongs to a run with another {name}",
                    "resume with the settings and files it was started with, or choose another --out",
                )
        expected = self._expected()
        for name, shape in shapes.items():
            if name.startswith("optimizer."):
                moment_of(name, list(self.network.parameters()), place)
            if name not in expected:
                raise InputError(place, f"holds a tensor of another kind ({shown(name)[1:-1]})", damaged)
            if shape != expected[name]:
                found = shape if len(shape) < 6 else f"of {len(shape):,} dimensions"
                raise InputError(place, f"{name} has shape {found}, expected {expected[name]}", damaged)

    def _expected(self) -> dict[str, tuple[int, ...]]:
        """The shapes of all tensors that a checkpoint of this run may hold."""
        like = {f"network.{name}": tensor for name, tensor in weights_of(self.network).items()}
        like |= self.average.tensors() if self.average is not None else {}
        like |= self._first_state().tensors("state.")
        like |= {f"random.{kind}": module.get_rng_state() for kind, module in self._generators().items()}
        for index, weight in enumerate(self.network.parameters()):
            moments = {"exp_avg": weight, "exp_avg_sq": weight, "step": torch.zeros(())}
            like |= {f"optimizer.{index}.{name}": tensor for name, tensor in moments.items()}
        return {name: tuple(tensor.shape) for name, tensor in like.items()}

    def _first_state(self) -> State:
        """What a run of streams begins with."""
        streams = max(1, min(self.config.batch_size, len(self.data.training.ids)))
        return State.zero(self.recipe.model, streams, self.network.decoder.bias)

    def _state(self, tensors: Mapping[str, Tensor], place: str) -> State:
        """What the last batch handed on."""
        like = self._first_state().tensors("state.")
        handed_on = {
            name: require_shape(tensors, name, each.shape, place).to(each.dtype) for name, each in like.items()
        }
        return State.from_tensors(handed_on, "state.").to(self.device)

    def _generators(self) -> dict[str, Any]:
        """The modules whose random generator decides what is dropped, by device."""
        kinds = {"cpu", self.device.type}
        return {kind: torch if kind == "cpu" else torch.get_device_module(kind) for kind in sorted(kinds)}

    def _identity(self, recipe: Recipe) -> dict[str, Any]:
        """What must be the same for a checkpoint to be this run's; budgets may change."""
        free, values = ("epochs", "steps", "checkpoint_every"), recipe.to_json()
        return {
            "text": self.data.training.checksum,
            "vocabulary": self.data.vocabulary.fingerprint,
            "validation text": self.data.validation.checksum,
            "number of training tokens": len(self.data.training.ids),  # the same text may be split in another way
            "number of validation tokens": len(self.data.validation.ids),
            "text configuration": values["text"],
            "model configuration": values["model"],
            "training configuration": {key: value for key, value in values["training"].items() if key not in free},
            "device": self.device.type,
        }
