"""Two language models as one: p(w) = (1 − λ) p_model(w) + λ p_other(w), and the λ that suits a text best.

The likelihood of a text, Σ ln(1 − λ + λ p_other / p_model), is concave in λ: its slope falls from left to right, so the
best λ is found by halving. Where the other model has nothing to say, it repeats the first one's probability, which
leaves the mixture as it is and the slope untouched.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LARGEST_EXPONENT = 700.0
"""exp of more than this is no longer a float."""
_HALVINGS = 40


def mixed(log_probabilities: Floats, others: Floats, weight: float) -> Floats:
    """Give ln p of each token by the two models together, from ln p by each; `weight` is λ, below 1."""
    if not weight:
        return log_probabilities.copy()
    return np.logaddexp(np.log1p(-weight) + log_probabilities, np.log(weight) + others)


def best_weight(log_probabilities: Floats, others: Floats) -> float:
    """The λ of greatest likelihood."""
    gain = np.exp((others - log_probabilities).clip(max=_LARGEST_EXPONENT)) - 1
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if np.sum(gain / (1 + middle * gain)) > 0:
            low = middle
        else:
            high = middle
    return low
