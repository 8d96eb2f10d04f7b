"""What is added to the loss that is minimised, though not to the loss that is shown (Merity et al. 2017).

activity · mean h_t²  +  change · mean (h_t − h_{t−1})²,    h of the last layer, at real positions of the chunk

# T time, B batch, H hidden
"""

from __future__ import annotations

from torch import Tensor

from prpn.config import TrainingConfig


def penalty(hidden: Tensor, mask: Tensor | None, config: TrainingConfig) -> Tensor | float:
    """The penalty for hidden states (T, B, H); mask (T, B) is false at padding."""
    total: Tensor | float = 0.0
    if config.activity_penalty:
        total = total + config.activity_penalty * _mean_square(hidden, mask)
    if config.change_penalty and len(hidden) > 1:
        change = hidden[1:] - hidden[:-1]
        total = total + config.change_penalty * _mean_square(change, None if mask is None else mask[1:])
    return total


def _mean_square(x: Tensor, mask: Tensor | None) -> Tensor:
    """Mean of the squares of (T, B, H) where the mask is true; zero where it never is."""
    real = x if mask is None else x[mask]
    return real.square().sum() / max(1, real.numel())
