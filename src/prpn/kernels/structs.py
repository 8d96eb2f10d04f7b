"""The structs of the native core, mirrored field by field, and the shapes of the arrays that they point to.

When the core is loaded, sizes and last fields are compared with its own (`prpn.kernels.native`). Nothing here imports
torch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from prpn.kernels.checked import address

Pointer, Size = ctypes.c_void_p, ctypes.c_int64
Shapes = Mapping[str, tuple[int, ...]]


class Arguments(ctypes.Structure):
    """The arguments of a function that takes many, as a struct."""

    SPACED: ClassVar[frozenset[str]] = frozenset()
    """Arrays whose rows lie apart, by a stride that is a field as well."""

    def set(self, **fields: Any) -> Self:
        """Set fields: numbers, and tensors that have the shapes that follow from them."""
        numbers = {name: value for name, value in fields.items() if isinstance(value, int | float)}
        for name, value in numbers.items():
            setattr(self, name, value)
        shapes = self.shapes()
        for name in fields.keys() - numbers.keys():
            lying = "evenly spaced" if name in self.SPACED else "by rows"
            setattr(self, name, address(fields[name], shapes[name], lying))  # type: ignore[arg-type]
        return self

    def with_fields(self, **fields: Any) -> Self:
        """A copy with other fields set: several threads may go on from the same arguments."""
        return type(self).from_buffer_copy(self).set(**fields)

    def shapes(self) -> Shapes:
        """The shape of each array."""
        raise NotImplementedError


class Learned(ctypes.Structure):
    """`Learned` in native/adam.cpp."""

    _fields_ = (
        *((name, Pointer) for name in ("weight", "gradient", "mean", "square")),
        *((name, Size) for name in ("count", "step")),
    )


class Settings(ctypes.Structure):
    """`Settings` in native/adam.cpp."""

    _fields_ = tuple((name, ctypes.c_double) for name in ("rate", "beta1", "beta2", "epsilon", "decay", "clip"))


class BatchNorm(Arguments):
    """`BatchNorm` in native/batch_norm.cpp."""

    _fields_ = (
        *((name, Size) for name in ("rows", "columns", "threads")),
        ("activation", ctypes.c_int32),
        *((name, ctypes.c_float) for name in ("epsilon", "momentum")),
        *((name, Pointer) for name in ("x", "gain", "shift", "y", "mean", "inverse")),
        *((name, Pointer) for name in ("running_mean", "running_variance")),
        *((name, Pointer) for name in ("d_y", "d_x", "d_gain", "d_shift")),
    )

    def shapes(self) -> Shapes:
        """The shape of each array."""
        columns = "gain", "shift", "mean", "inverse", "running_mean", "running_variance", "d_gain", "d_shift"
        return {
            **dict.fromkeys(("x", "y", "d_y", "d_x"), (self.rows, self.columns)),
            **dict.fromkeys(columns, (self.columns,)),
        }


class Convolution(Arguments):
    """`Convolution` in native/convolution.cpp."""

    _fields_ = (
        *((name, Size) for name in ("steps", "batch", "taps", "embedding", "channels", "paired", "threads")),
        ("format", ctypes.c_int32),
        *((name, Pointer) for name in ("tape", "weight", "bias", "result", "inputs", "weights")),
        *((name, Pointer) for name in ("d_result", "d_tape", "d_weight", "d_bias")),
    )
    TAPS, PAIR, PRODUCTS = 3, 2, 4

    def shapes(self) -> Shapes:
        """The shape of each array."""
        width, pairs = self.paired // self.TAPS * self.embedding, (self.steps + 1) // self.PAIR
        return {
            **dict.fromkeys(("tape", "d_tape"), (self.taps - 1 + self.steps, self.batch, self.embedding)),
            **dict.fromkeys(("weight", "d_weight"), (self.taps, self.channels, self.embedding)),
            **dict.fromkeys(("bias", "d_bias"), (self.channels,)),
            **dict.fromkeys(("result", "d_result"), (self.steps, self.batch, self.channels)),
            "inputs": (self.PRODUCTS, pairs * self.batch, width),
            "weights": (self.PRODUCTS, self.channels, width),
        }


class Predicting(Arguments):
    """`Predicting` in native/predicting.cpp."""

    _fields_ = (
        *((name, Size) for name in ("steps", "batch", "slots", "hidden", "tape_stride", "threads")),
        *((name, Pointer) for name in ("tape", "keys", "gates")),
        ("seed", ctypes.c_uint64),
        ("rate", ctypes.c_float),
        *((name, Pointer) for name in ("relative", "attention", "kept", "joined")),
        *((name, Pointer) for name in ("d_joined", "d_gates", "d_scores", "d_keys", "d_tape")),
    )
    SPACED = frozenset({"tape"})

    def shapes(self) -> Shapes:
        """The shape of each array."""
        steps, batch, slots, hidden = self.steps, self.batch, self.slots, self.hidden
        weights = "gates", "relative", "attention", "kept", "d_gates", "d_scores"
        return {
            **dict.fromkeys(("tape", "d_tape"), (slots + steps, batch, hidden)),
            **dict.fromkeys(("keys", "d_keys"), (steps, batch, hidden)),
            **dict.fromkeys(weights, (steps, batch, slots)),
            **dict.fromkeys(("joined", "d_joined"), (steps, batch, 2 * hidden)),
        }


class Reading(Arguments):
    """`Reading` in native/reading.h."""

    SIZES = ("steps", "batch", "slots", "hidden", "past_hidden_stride", "past_cells_stride", "key_stride", "threads")
    FLAGS = ("released", "bf16", "attends", "keeps_past_gradient")
    WEIGHTS = (
        "input_gain", "input_shift", "hidden_weight", "hidden_bias", "hidden_gain", "hidden_shift", "cell_gain",
        "cell_shift",
    )  # fmt: skip
    INPUTS = (
        "gate_inputs", "key_inputs", "gates", "past_hidden", "past_cells", "key_weight", *WEIGHTS, "recurrent_mask",
    )  # fmt: skip
    KEPT = (
        "tape", "summaries", "keys", "relative", "attention", "kept", "normed", "input_mean", "input_scale",
        "hidden_scale", "cell_mean", "cell_scale",
    )  # fmt: skip
    SUMS = ("d_input_gain", "d_shift", "d_hidden_bias", "d_hidden_gain", "d_cell_gain", "d_cell_shift")
    GRADIENTS = ("d_hidden", "d_cells", "d_now", "d_past", "d_gates", "d_keys", "d_scores", "d_summaries", *SUMS)
    SPACED = frozenset({"past_hidden", "past_cells", "key_weight"})
    _fields_ = (
        *((name, Size) for name in SIZES),
        *((name, ctypes.c_int32) for name in FLAGS),
        *((name, Pointer) for name in INPUTS),
        *((name, ctypes.c_uint64) for name in ("key_in_seed", "key_out_seed", "attention_seed")),
        *((name, ctypes.c_float) for name in ("key_rate", "attention_rate")),
        *((name, Pointer) for name in (*KEPT, *GRADIENTS)),
    )

    def shapes(self) -> Shapes:
        """The shape of each array."""
        steps, batch, slots, size = self.steps, self.batch, self.slots, self.hidden
        attending = steps if self.attends else 0
        means = "input_mean", "input_scale", "hidden_scale", "cell_mean", "cell_scale"
        gates = "input_gain", "input_shift", "hidden_bias", "hidden_gain", "hidden_shift", *self.SUMS[:4]
        cells = "cell_gain", "cell_shift", "recurrent_mask", *self.SUMS[4:]
        return {
            **dict.fromkeys(("gate_inputs", "normed"), (steps, batch, 4 * size)),
            **dict.fromkeys(("key_inputs", "d_now"), (steps, batch, size)),
            **dict.fromkeys(("gates", "d_gates"), (steps, batch, slots)),
            **dict.fromkeys(("past_hidden", "past_cells"), (slots, batch, size)),
            "key_weight": (size, size),
            "hidden_weight": (4 * size, size),
            **dict.fromkeys(gates, (4 * size,)),
            **dict.fromkeys(cells, (size,)),
            "tape": (slots + steps, batch, 2 * size),  # [h; c]
            **dict.fromkeys(("summaries", "d_summaries"), (steps, batch, 2 * size)),  # [h̃; c̃]
            **dict.fromkeys(("keys", "d_keys"), (attending, batch, size)),
            **dict.fromkeys(("relative", "attention", "kept", "d_scores"), (attending, batch, slots)),
            **dict.fromkeys(means, (steps, batch)),
            **dict.fromkeys(("d_hidden", "d_cells"), (slots + steps, batch, size)),
            "d_past": (slots, batch, 2 * size),
        }


MIRRORED: dict[str, type[ctypes.Structure]] = {
    "learned": Learned,
    "settings": Settings,
    "batch_norm": BatchNorm,
    "convolution": Convolution,
    "predicting": Predicting,
    "reading": Reading,
}
"""By the functions of the core that say how they are laid out, prpn_…_layout."""
