"""Adam, as a recipe asks for it, without memory for a moment that it does not have, nor a pass of its own for clipping.

    g ← g / max(1, |g| / clip)
    m ← β₁ m + (1 − β₁) g        v ← β₂ v + (1 − β₂) g²        weight ← weight − η m̂ / (√v̂ + ε)

The norm |g| is over all parameters. The native core does all of it in one call; without it PyTorch's fused step divides
by the norm while it reads g.

With β₁ = 0, as in the paper's word models, m is the gradient g itself, and a quarter of what weights, gradients and
moments take is saved. (PyTorch's step reads every number of g and m before it writes m, so g can stand for m there.)
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
    """Adam for one group of weights; gradients are clipped by their norm, decay is L2 in the clipped gradient."""

    grad_scale: Tensor | None
    """What PyTorch's fused step divides gradients by: its name, meant for scaled losses."""

    def __init__(self, parameters: Iterable[Tensor], config: TrainingConfig) -> None:
        super().__init__(
            parameters,
            lr=config.learning_rate,
            betas=(config.beta1, config.beta2),
            eps=config.epsilon,
            weight_decay=config.weight_decay,
            fused=True,
        )
        self.clip, self.grad_scale, self.has_mean = config.clip, None, config.beta1 != 0

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Move the weights; gradients are spent afterwards."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        moving = self._moving()
        if not moving:
            return loss
        if all(_lies_without_gaps(weight) for weight, _ in moving):
            self._native_step(moving)
            return loss
        if self.clip:  # as PyTorch's clip_grad_norm_
            norm = get_total_norm([gradient for _, gradient in moving])
            self.grad_scale = ((norm + 1e-6) / self.clip).clamp(min=1.0)
        stand_ins = [] if self.has_mean else moving
        for weight, gradient in stand_ins:
            self._state_of(weight)["exp_avg"] = gradient
        super().step()
        for weight, _ in stand_ins:
            del self.state[weight]["exp_avg"]
        return loss

    def _native_step(self, moving: list[tuple[Tensor, Tensor]]) -> None:
        (group,) = self.param_groups
        states = [self._state_of(weight) for weight, _ in moving]
        steps = [state["step"] for state in states]
        torch._foreach_add_(steps, 1)
        learned = [
            Learned(weight, gradient, state.get("exp_avg"), state["exp_avg_sq"], int(step))
            for (weight, gradient), state, step in zip(moving, states, torch.stack(steps).tolist(), strict=True)
        ]
        native_adam(learned, group["lr"], group["betas"], group["eps"], group["weight_decay"], self.clip)

    def _moving(self) -> list[tuple[Tensor, Tensor]]:
        """The weights that have a gradient, and it, lying in memory as its weight does: a step goes through numbers."""
        (group,) = self.param_groups
        moving = []
        for weight in group["params"]:
            if weight.grad is not None:
                if weight.grad.stride() != weight.stride():
                    weight.grad = torch.empty_like(weight).copy_(weight.grad)
                moving.append((weight, weight.grad))
        return moving

    def _state_of(self, weight: Tensor) -> dict[str, Tensor]:
        """As PyTorch begins it, but without a first moment where β₁ = 0."""
        state: dict[str, Tensor] = self.state[weight]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device=weight.device)
            if self.has_mean:
                state["exp_avg"] = torch.zeros_like(weight)
            state["exp_avg_sq"] = torch.zeros_like(weight)
        if not self.has_mean:
            state.pop("exp_avg", None)  # of PyTorch's Adam, whose state was loaded
        return state


def _lies_without_gaps(weight: Tensor) -> bool:
    """Whether the native core can read a weight as a row of numbers, whatever the order of its dimensions in memory."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(weight.shape, weight.stride(), strict=True))
    return native_reads(weight) and span == weight.numel()
