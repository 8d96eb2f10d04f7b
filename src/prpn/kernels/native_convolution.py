"""The convolution of the parsing network in the native core (native/convolution.cpp), pairs of outputs at a time.

# T time, B batch, K taps, E embedding, C channels
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from torch import Tensor

from prpn.kernels.native import required_library, threads
from prpn.kernels.structs import Convolution

WORTH_PAIRING = 512
"""Rows (T · B) from which on combining inputs and weights is taken to cost less than the products it saves."""
TAPS, PAIR, PRODUCTS = Convolution.TAPS, Convolution.PAIR, Convolution.PRODUCTS


class NativeConvolution(Convolution):
    """The arguments of a convolution, which its backward pass takes up again."""

    def forward(self, tape: Tensor, factors: Tensor, bias: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """(T, B, C) from a tape (K − 1 + T, B, E) and factors (K, C, E), and what the backward pass reads again."""
        (taps, channels, size), batch = factors.shape, tape.shape[1]
        steps = len(tape) - taps + 1
        paired = taps // TAPS * TAPS if steps * batch >= WORTH_PAIRING and steps >= PAIR else 0
        result = tape.new_empty(steps, batch, channels)
        width, pairs = paired // TAPS * size, (steps + 1) // PAIR
        kept = tape.new_empty(PRODUCTS, pairs * batch, width), tape.new_empty(PRODUCTS, channels, width)
        bias = bias.contiguous()
        self.set(
            steps=steps, batch=batch, taps=taps, embedding=size, channels=channels, paired=paired, threads=threads(),
            tape=tape, weight=factors, bias=bias, result=result, inputs=kept[0], weights=kept[1],
        )  # fmt: skip
        required_library().prpn_convolution_forward(ctypes.byref(self))
        return result, kept

    def backward(
        self, tape: Tensor, factors: Tensor, kept: Sequence[Tensor], gradient: Tensor, form: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of the tape, the factors and the bias."""
        d_tape, d_factors = tape.new_empty(tape.shape), factors.new_empty(factors.shape)
        d_bias = factors.new_empty(self.channels)
        arguments = self.with_fields(
            threads=threads(), tape=tape, weight=factors, inputs=kept[0], weights=kept[1], d_result=gradient,
            d_tape=d_tape, d_weight=d_factors, d_bias=d_bias, format=form,
        )  # fmt: skip
        required_library().prpn_convolution_backward(ctypes.byref(arguments))
        return d_tape, d_factors, d_bias
