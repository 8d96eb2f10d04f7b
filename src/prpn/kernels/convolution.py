"""The parsing network's convolution over time as products that add up in place, forwards and backwards.

    y_t = b + Σ_k W_k x_{t+k}        ∂x_{t+k} += W_kᵀ ∂y_t        ∂W_k = Σ_t ∂y_t x_{t+k}ᵀ

Time is the first dimension, so the rows x_k … x_{k+T−1} lie together and nothing is unfolded or copied. Forwards the
products are fp32 whatever the others are: sharp gates multiply an error in the distances.

Where there are rows enough, each three taps give two neighbouring outputs by four products in place of six (Winograd's
minimal filtering F(2, 3), the same numbers but for rounding):

    m_0 = W_0 (x_t − x_{t+2})                       m_1 = ½ (W_0 + W_1 + W_2) (x_{t+1} + x_{t+2})
    m_3 = W_2 (x_{t+1} − x_{t+3})                   m_2 = ½ (W_0 − W_1 + W_2) (x_{t+2} − x_{t+1})
    y_t = m_0 + m_1 + m_2                           y_{t+1} = m_1 − m_2 − m_3

Three small matrices, for x, W and m, say all of this, and transposed they say what comes back.

    # T time, B batch, L look-back, E embedding, C channels; P pairs of outputs, G groups of three taps
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from prpn.kernels.combining import Matrix, combine
from prpn.kernels.products import product

WORTH_PAIRING = 512
"""Rows (T · B) from which on combining inputs and weights is taken to cost less than the products it saves."""

TAPS, PAIR = 3, 2
OF_INPUTS: Matrix = [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]]
OF_WEIGHTS: Matrix = [[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]
OF_PRODUCTS: Matrix = [[1, 1, 1, 0], [0, 1, -1, -1]]
IN_BOTH = 1
"""The product that both outputs contain once: the bias goes with it."""


def convolve(tape: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(T, B, C) from a tape (L + T, B, E) and a weight (C, E, L + 1)."""
    result: Tensor = _Convolution.apply(tape.contiguous(), weight, bias)  # type: ignore[no-untyped-call]
    return result


def lying_by_time(weight: Tensor) -> nn.Parameter:
    """The same weight (C, E, L + 1), lying in memory as W_0 … W_L one after the other, as products want it."""
    return nn.Parameter(_by_time(weight.detach()).permute(1, 2, 0))


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tape: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        factors = _by_time(weight)  # (L + 1, C, E)
        steps, batch = len(tape) - len(factors) + 1, tape.shape[1]
        result, start = tape.new_empty(steps * batch, len(bias)), bias
        paired = len(factors) // TAPS * TAPS if len(result) >= WORTH_PAIRING and steps >= PAIR else 0
        ctx.pairs = None
        if paired:
            ctx.pairs = _Pairs(tape, factors[:paired], steps)
            ctx.pairs.forward(bias, result.view(steps, batch, -1))
            start = result
        for k in range(paired, len(factors)):
            product(_shifted(tape, k, steps), factors[k].t(), start, result, precise=True)
            start = result
        ctx.save_for_backward(tape, weight)
        return result.view(steps, batch, -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        tape, weight = ctx.saved_tensors
        factors, gradient = _by_time(weight), gradient.contiguous()
        steps, rows = len(gradient), gradient.flatten(0, 1)  # (T·B, C)
        d_tape, d_factors = torch.zeros_like(tape), torch.empty_like(factors)
        paired = 0
        if ctx.pairs is not None:
            paired = ctx.pairs.taps
            ctx.pairs.backward(gradient, d_tape, d_factors[:paired])
        for k in range(paired, len(factors)):
            d_rows = _shifted(d_tape, k, steps)
            product(rows, factors[k], d_rows, d_rows)
            product(rows.t(), _shifted(tape, k, steps), out=d_factors[k])
        return d_tape, d_factors.permute(1, 2, 0), rows.sum(0)


class _Pairs:
    """Pairs of outputs by groups of three taps: inputs, weights and products combined."""

    def __init__(self, tape: Tensor, factors: Tensor, steps: int) -> None:
        (self.taps, self.channels, size), self.batch = factors.shape, tape.shape[1]
        self.pairs, self.groups = (steps + 1) // PAIR, self.taps // TAPS
        self.inputs = tape.new_empty(4, self.pairs, self.batch, self.groups, size)
        self.weights = tape.new_empty(4, self.channels, self.groups, size)
        for group in range(self.groups):
            windows = [self._every_second(tape, TAPS * group + k) for k in range(4)]
            combine(OF_INPUTS, windows, self.inputs[:, :, :, group].unbind())
        combine(OF_WEIGHTS, self._by_group(factors), self.weights.transpose(1, 2).unbind())

    def forward(self, bias: Tensor, result: Tensor) -> None:
        """Write the convolution (T, B, C)."""
        products = result.new_empty(4, self.pairs * self.batch, self.channels)
        for i, (rows, weight) in enumerate(zip(*self._as_factors(), strict=True)):
            product(rows, weight.t(), bias if i == IN_BOTH else None, products[i], precise=True)
        combine(OF_PRODUCTS, self._by_pair(products), [result[0::PAIR], result[1::PAIR]])

    def backward(self, gradient: Tensor, d_tape: Tensor, d_factors: Tensor) -> None:
        """Write the gradient of the factors and add that of the tape, from the convolution's (T, B, C)."""
        d_products = gradient.new_empty(4, self.pairs * self.batch, self.channels)
        combine(_transposed(OF_PRODUCTS), [gradient[0::PAIR], gradient[1::PAIR]], self._by_pair(d_products))
        d_inputs, d_weights = torch.empty_like(self.inputs), torch.empty_like(self.weights)
        for i, (rows, weight) in enumerate(zip(*self._as_factors(), strict=True)):
            product(d_products[i].t(), rows, out=d_weights[i].flatten(1))
            product(d_products[i], weight, out=d_inputs[i].flatten(0, 1).flatten(1))
        combine(_transposed(OF_WEIGHTS), d_weights.transpose(1, 2).unbind(), self._by_group(d_factors))
        back = _transposed(OF_INPUTS)
        for group in range(self.groups):
            parts = d_inputs[:, :, :, group].unbind()
            for k in (0, PAIR):  # windows overlap by two
                windows = [self._every_second(d_tape, TAPS * group + k + i) for i in range(PAIR)]
                combine(back[k : k + PAIR], parts, windows, add=True)

    def _every_second(self, tape: Tensor, first: int) -> Tensor:
        """(P, B, …) from a place on; one less where the tape ends, an odd number of outputs having half a pair."""
        return tape[first : first + PAIR * self.pairs - 1 : PAIR]

    def _by_group(self, factors: Tensor) -> list[Tensor]:
        """The three taps (G, C, E) of each group."""
        return list(factors.unflatten(0, (self.groups, TAPS)).unbind(1))

    def _by_pair(self, products: Tensor) -> list[Tensor]:
        return list(products.unflatten(1, (self.pairs, self.batch)).unbind())

    def _as_factors(self) -> tuple[list[Tensor], list[Tensor]]:
        """Inputs (P·B, G·E) and weights (C, G·E) of the four products."""
        return list(self.inputs.flatten(3).flatten(1, 2).unbind()), list(self.weights.flatten(2).unbind())


def _transposed(matrix: Matrix) -> Matrix:
    return list(zip(*matrix, strict=True))


def _by_time(weight: Tensor) -> Tensor:
    """W_0 … W_L one after the other (L + 1, C, E), of a weight (C, E, L + 1); no copy where it lies so already."""
    return weight.permute(2, 0, 1).contiguous()


def _shifted(tape: Tensor, k: int, steps: int) -> Tensor:
    """The rows (T·B, …) from time k on: a view of the tape."""
    return tape[k : k + steps].flatten(0, 1)
