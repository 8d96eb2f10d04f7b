"""Adam, as a recipe asks for it, without memory for a moment that it does not have, nor a pass of its own for clipping.

    g ← g / max(1, |g| / clip)
    m ← β₁ m + (1 − β₁) g        v ← β₂ v + (1 − β₂) g²        weight ← weight − η m̂ / (√v̂ + ε)

The norm |g| is over all parameters; the fused step divides by it while it reads g.

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
        if self.clip:
            self.grad_scale = ((self._norm() + 1e-6) / self.clip).clamp(min=1.0)  # as PyTorch's clip_grad_norm_
        moments = [
            (parameter, self.state[parameter])
            for group in self.param_groups
            if group["betas"][0] == 0
            for parameter in group["params"]
            if parameter.grad is not None
        ]
        for parameter, state in moments:
            if not state:
                state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
                state["exp_avg_sq"] = torch.zeros_like(parameter)
            state["exp_avg"] = parameter.grad
        result = super().step(closure)
        for _, state in moments:
            del state["exp_avg"]
        return result

    def _norm(self) -> Tensor:
        """|g| over all parameters."""
        parameters = (parameter for group in self.param_groups for parameter in group["params"])
        return get_total_norm([parameter.grad for parameter in parameters if parameter.grad is not None])
