"""Adam, as a recipe asks for it, without memory for a moment that it does not have, nor a pass of its own for clipping.

    g ← g / max(1, |g| / clip)
    m ← β₁ m + (1 − β₁) g        v ← β₂ v + (1 − β₂) g²        weight ← weight − η m̂ / (√v̂ + ε)

The norm |g| is over all parameters. The native core does all of it in one call; without it PyTorch's fused step divides
by the norm while it reads g.

With β₁ = 0, as in the paper's word models, m is the gradient g itself. The fused step reads every number of g and m
before it writes m, so g can stand for m, and a quarter of what weights, gradients and moments take is saved.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from prpn.config import TrainingConfig
from prpn.kernels import native_reads
from prpn.kernels.native_adam import Learned, native_adam


class Adam(torch.optim.Adam):
    """PyTorch's fused Adam; gradients are clipped by their norm, weight decay is L2 in the clipped gradient."""

    grad_scale: Tensor | None
    """What the fused step divides gradients by: PyTorch's name, meant for scaled losses."""

    def __init__(self, parameters: Iterable[Tensor], config: TrainingConfig) -> None:
        super().__init__(
            parameters,
            lr=config.learning_rate,
            betas=(config.beta1, config.beta2),
            eps=config.epsilon,
            weight_decay=config.weight_decay,
            fused=True,
        )
        self.clip, self.grad_scale = config.clip, None

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Move the weights; gradients are spent afterwards."""
        for weight in self._moving():
            self._lay_alike(weight)
        if closure is None and all(_lies_without_gaps(weight) for weight in self._moving()):
            return self._native_step()
        if self.clip:
            self.grad_scale = ((self._norm() + 1e-6) / self.clip).clamp(min=1.0)  # as PyTorch's clip_grad_norm_
        moments = [weight for weight in self._moving() if self.defaults["betas"][0] == 0]
        for weight in moments:
            if weight.grad is not None:
                self._state_of(weight)["exp_avg"] = weight.grad
        result = super().step(closure)
        for weight in moments:
            del self.state[weight]["exp_avg"]
        return result

    def _native_step(self) -> None:
        learned = []
        for weight in self._moving():
            state, gradient = self._state_of(weight), weight.grad
            assert gradient is not None
            state["step"] += 1
            learned.append(Learned(weight, gradient, state.get("exp_avg"), state["exp_avg_sq"], int(state["step"])))
        (group,) = self.param_groups
        native_adam(learned, group["lr"], group["betas"], group["eps"], group["weight_decay"], self.clip)

    def _moving(self) -> list[Tensor]:
        """The weights that have a gradient."""
        (group,) = self.param_groups
        return [weight for weight in group["params"] if weight.grad is not None]

    def _state_of(self, weight: Tensor) -> dict[str, Tensor]:
        """As PyTorch begins it, but without a first moment where β₁ = 0."""
        state: dict[str, Tensor] = self.state[weight]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device=weight.device)
            if self.defaults["betas"][0] != 0:
                state["exp_avg"] = torch.zeros_like(weight)
            state["exp_avg_sq"] = torch.zeros_like(weight)
        return state

    @staticmethod
    def _lay_alike(weight: Tensor) -> None:
        """Let the gradient lie in memory as its weight does: a step goes through both number by number."""
        if weight.grad is not None and weight.grad.stride() != weight.stride():
            weight.grad = torch.empty_like(weight).copy_(weight.grad)

    def _norm(self) -> Tensor:
        """|g| over all weights."""
        return get_total_norm([weight.grad for weight in self._moving() if weight.grad is not None])


def _lies_without_gaps(weight: Tensor) -> bool:
    """Whether the native core can read a weight as a row of numbers, whatever the order of its dimensions in memory."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(weight.shape, weight.stride(), strict=True))
    return native_reads(weight) and span == weight.numel()
