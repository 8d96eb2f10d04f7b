"""Reading network: one time step of one layer.

k_t      = W_k [x_t; h_{t−1}] + b_k
s_i^t    = structured attention of k_t over h_{t−N_m} … h_{t−1} with the reading gates
h̃_t, c̃_t = Σ s_i^t h_i, Σ s_i^t c_i                   without reading attention: h_{t−1}, c_{t−1}
i; f; u; o = LN(W_x x_t + b_x) + LN(W_h h̃_t + b_h)     rows in the order input, forget, cell, output
c_t      = σ(f) c̃_t + σ(i) tanh(u)
h_t      = σ(o) tanh(LN(c_t))

c_t goes onto its tape as it is, before the layer norm, and h_t onto the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.reference.attention import structured_attention, summary
from tests.reference.norms import layer_norm


def read(
    x: Tensor,
    hidden: Sequence[Tensor],
    cell: Sequence[Tensor],
    gates: Sequence[Tensor],
    weights: dict[str, Tensor],
    layer: int,
    flavour: str,
    attention: bool,
) -> tuple[Tensor, Tensor, list[Tensor] | None]:
    """h_t (B, H), c_t (B, H), s^t (N_m of (B,)) from x_t (B, E or H), the last N_m states, oldest first, and gates."""
    name = f"reading.{layer}"
    attended = None
    h, c = hidden[-1], cell[-1]  # (B, H)
    if attention:
        key = F.linear(torch.cat([x, hidden[-1]], -1), weights[f"{name}.key.weight"], weights[f"{name}.key.bias"])
        attended = structured_attention(key, hidden, gates)
        h, c = summary(attended, hidden), summary(attended, cell)
    from_input = F.linear(x, weights[f"{name}.input_gates.weight"], weights[f"{name}.input_gates.bias"])  # (B, 4H)
    from_hidden = F.linear(h, weights[f"{name}.hidden_gates.weight"], weights[f"{name}.hidden_gates.bias"])  # (B, 4H)
    i, f, u, o = (
        layer_norm(from_input, weights, f"{name}.input_norm", flavour)
        + layer_norm(from_hidden, weights, f"{name}.hidden_norm", flavour)
    ).chunk(4, -1)  # each (B, H)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(u)
    h = torch.sigmoid(o) * torch.tanh(layer_norm(c, weights, f"{name}.cell_norm", flavour))
    return h, c, attended
