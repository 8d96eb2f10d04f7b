"""Adam, as a recipe asks for it, without memory for a moment that it does not have.

    m ← β₁ m + (1 − β₁) g        v ← β₂ v + (1 − β₂) g²        weight ← weight − η m̂ / (√v̂ + ε)

With β₁ = 0, as in the paper's word models, m is the gradient g itself. The fused step reads every number of g and m
before it writes m, so g can stand for m, and a quarter of what weights, gradients and moments take is saved.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from prpn.config import TrainingConfig


class Adam(torch.optim.Adam):
    """PyTorch's fused Adam; weight decay is L2 in the gradient."""

    def __init__(self, parameters: Iterable[Tensor], config: TrainingConfig) -> None:
        super().__init__(
            parameters,
            lr=config.learning_rate,
            betas=(config.beta1, config.beta2),
            eps=config.epsilon,
            weight_decay=config.weight_decay,
            fused=True,
        )

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Move the weights; gradients are spent afterwards."""
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
