"""What the native core refuses: each wrong argument is an error of Python, never something that was read or written."""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from prpn.kernels import native, parsing, structs
from prpn.kernels.checked import address, place, place_to_fill
from prpn.kernels.loss import native_decode
from prpn.kernels.native_adam import Learned, native_adam
from prpn.kernels.native_batch_norm import native_batch_norm
from prpn.kernels.native_dropout import HashedMask
from prpn.kernels.native_recurrence import native_recurrence
from prpn.kernels.native_stick import native_stick
from prpn.kernels.products import native_product
from prpn.text.pieces import Piece
from tests.kernels.native import needs_native_core
from tests.kernels.parsers import random_parser

pytestmark = needs_native_core

HUGE = 2**62
KEPT: list[np.ndarray] = []


def lasting(values: Any, kind: Any = np.int64) -> int:
    """Where an array lies that nobody takes away."""
    KEPT.append(np.array(values, dtype=kind))
    return KEPT[-1].ctypes.data


FLOATS, NUMBERS, SPANS = lasting(np.ones(4096), np.float32), lasting(np.zeros(64)), lasting(np.zeros(64))
CALLS: dict[str, tuple[Any, ...]] = {
    "prpn_dropout": (FLOATS, 4, 3, 4, 1, 0.5, FLOATS, 1),
    "prpn_decoding": (FLOATS, FLOATS, FLOATS, NUMBERS, 3, 4, 5, 2, 0, FLOATS, FLOATS, FLOATS, FLOATS, 1),
    "prpn_product": (FLOATS, 4, 1, FLOATS, 5, 1, 3, 4, 5, 0, FLOATS, None, 0, 1),
    "prpn_stick_forward": (FLOATS, 3, 4, FLOATS, 1),
    "prpn_stick_backward": (FLOATS, FLOATS, FLOATS, 3, 4, FLOATS, 1),
    "prpn_parsing_rows": (FLOATS, 5, FLOATS, 4, 16, NUMBERS, 3, FLOATS, 1),
    "prpn_parsing_scores": (
        FLOATS, 2, FLOATS, FLOATS, 0.0, 16, 3, 0, 0, 1, NUMBERS, 4, 0, lasting([4]), 1, 0, 4, FLOATS, 1,
    ),
    "prpn_parsing_spans": (FLOATS, 4, lasting([1, 4]), 2, 0, SPANS, SPANS, 2, 1),
}  # fmt: skip
"""Arguments that are right, and small enough for the arrays they point to."""
ENDS = [lasting(ends) for ends in ([2, 4], [4, 2], [-1, 4], [2, 3])]
IDS = [lasting(ids, np.int32) for ids in ([0, 4, 1], [0, 5, 1], [0, -1, 1])]
TARGETS = [lasting(targets) for targets in ([0, 5, 1], [0, -1, 1], [0, -100, 1])]


def call(name: str, **changed: Any) -> None:
    """Call a function with some arguments changed, by their places: `_3=None`."""
    arguments = list(CALLS[name])
    for at, value in changed.items():
        arguments[int(at[1:])] = value
    getattr(native.required_library(), name)(*arguments)


@pytest.mark.parametrize("name", CALLS)
def test_what_is_right_is_done(name: str) -> None:
    call(name)


@pytest.mark.parametrize(
    ("name", "at"),
    [
        *(("prpn_dropout", at) for at in (0, 6)),
        *(("prpn_decoding", at) for at in (0, 1, 2, 3, 9, 10, 11, 12)),
        *(("prpn_product", at) for at in (0, 3, 10)),
        *(("prpn_stick_forward", at) for at in (0, 3)),
        *(("prpn_stick_backward", at) for at in (0, 1, 2, 5)),
        *(("prpn_parsing_rows", at) for at in (0, 2, 5, 7)),
        *(("prpn_parsing_scores", at) for at in (0, 2, 3, 10, 13, 17)),
        *(("prpn_parsing_spans", at) for at in (0, 2, 5, 6)),
    ],
)
def test_arrays_must_be_there(name: str, at: int) -> None:
    with pytest.raises(ValueError, match="the native core: no array: "):
        call(name, **{f"_{at}": None})


SIZES = [
    *(("prpn_dropout", at) for at in (1, 2, 3)),
    *(("prpn_decoding", at) for at in (4, 5, 6)),
    *(("prpn_product", at) for at in (1, 2, 4, 5, 6, 7, 8, 12)),
    *(("prpn_stick_forward", at) for at in (1, 2)),
    *(("prpn_stick_backward", at) for at in (3, 4)),
    *(("prpn_parsing_rows", at) for at in (1, 3, 4, 6)),
    *(("prpn_parsing_scores", at) for at in (1, 5, 6, 7, 11, 12, 14, 15, 16)),
    *(("prpn_parsing_spans", at) for at in (1, 3, 7)),
]


@pytest.mark.parametrize(("name", "at"), SIZES)
def test_sizes_are_not_negative(name: str, at: int) -> None:
    with pytest.raises(ValueError, match=r"a size is negative|before they begin"):
        call(name, **{f"_{at}": -1})


@pytest.mark.parametrize(("name", "at"), SIZES)
@pytest.mark.parametrize("size", [HUGE, 2**63 - 1, 2**46 + 16])
def test_no_product_of_sizes_overflows(name: str, at: int, size: int) -> None:
    few = {"prpn_parsing_scores": (11, 12, 14, 15), "prpn_parsing_spans": (3, 7)}
    if size < HUGE and at in few.get(name, ()):
        pytest.skip("as many as memory has room for there may be")
    with pytest.raises(ValueError, match=r"larger than any memory|before they begin|after the last|all windows"):
        call(name, **{f"_{at}": size})


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("prpn_dropout", 7),
        ("prpn_decoding", 13),
        ("prpn_product", 13),
        ("prpn_stick_forward", 4),
        ("prpn_stick_backward", 6),
        ("prpn_parsing_rows", 8),
        ("prpn_parsing_scores", 18),
        ("prpn_parsing_spans", 8),
    ],
)
@pytest.mark.parametrize("threads", [0, -1, HUGE])
def test_there_are_threads(name: str, at: int, threads: int) -> None:
    with pytest.raises(ValueError, match="the number of threads"):
        call(name, **{f"_{at}": threads})


@pytest.mark.parametrize(("name", "at"), [("prpn_decoding", 8), ("prpn_product", 9)])
@pytest.mark.parametrize("kind", [-1, 3])
def test_formats_are_known(name: str, at: int, kind: int) -> None:
    with pytest.raises(ValueError, match=f"the native core: unknown format: {kind}"):
        call(name, **{f"_{at}": kind})


@pytest.mark.parametrize(
    ("name", "changed", "error", "message"),
    [
        ("prpn_dropout", {"_5": float("nan")}, ValueError, "a rate is not between 0 and 1"),
        ("prpn_dropout", {"_5": 1.5}, ValueError, "a rate is not between 0 and 1"),
        ("prpn_decoding", {"_7": 0}, ValueError, "a chunk has rows"),
        ("prpn_decoding", {"_4": 0}, ValueError, "no rows: their mean loss is not defined"),
        ("prpn_decoding", {"_3": TARGETS[0]}, IndexError, "target 5 at 1 is not one of 5"),
        ("prpn_decoding", {"_3": TARGETS[1]}, IndexError, "target -1 at 1 is not one of 5"),
        ("prpn_decoding", {"_3": TARGETS[2]}, IndexError, "target -100 at 1 is not one of 5"),
        ("prpn_product", {"_1": 9, "_2": 2}, ValueError, "lies neither by rows nor by columns"),
        ("prpn_parsing_rows", {"_4": 15}, ValueError, "the columns do not fill vectors"),
        ("prpn_parsing_rows", {"_5": IDS[1]}, IndexError, "word 5 at 1 is not one of 5"),
        ("prpn_parsing_rows", {"_5": IDS[2]}, IndexError, "word -1 at 1 is not one of 5"),
        ("prpn_parsing_scores", {"_5": 15}, ValueError, "the channels do not fill vectors"),
        ("prpn_parsing_scores", {"_7": 3}, ValueError, "all windows look ahead"),
        ("prpn_parsing_scores", {"_8": 2}, IndexError, "slot 2 at 0 is not one of 2"),
        ("prpn_parsing_scores", {"_9": -1}, IndexError, "slot -1 at 0 is not one of 2"),
        ("prpn_parsing_scores", {"_10": IDS[0], "_11": 3}, IndexError, "slot 4 at 1 is not one of 2"),
        ("prpn_parsing_scores", {"_11": 3}, ValueError, "there are words without a slot"),
        ("prpn_parsing_scores", {"_12": 1}, ValueError, "there are words without a slot"),
        ("prpn_parsing_scores", {"_15": 3, "_12": 2, "_11": 2}, ValueError, "there are words without a slot"),
        ("prpn_parsing_scores", {"_7": 1, "_11": 2, "_16": 2}, ValueError, "there are words without a slot"),
        ("prpn_parsing_scores", {"_13": ENDS[1], "_14": 2}, ValueError, "a sentence ends before it begins"),
        ("prpn_parsing_scores", {"_13": ENDS[2], "_14": 2}, ValueError, "a sentence ends before it begins"),
        ("prpn_parsing_scores", {"_13": ENDS[3], "_14": 2}, ValueError, "words after the last sentence"),
        ("prpn_parsing_scores", {"_15": 4, "_16": 3}, ValueError, "the words end before they begin"),
    ],
)
def test_numbers_are_within_what_they_count(name: str, changed: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=f"the native core: .*{message}"):
        call(name, **changed)


def test_sentences_may_be_empty_and_share_a_table_with_others() -> None:
    call("prpn_parsing_scores", _13=lasting([0, 2, 2, 4, 9]), _14=5)
    call("prpn_parsing_scores", _13=ENDS[0], _14=2, _15=2, _12=2, _11=2)


@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the sanitizer ends a process that asks for so much")
@pytest.mark.parametrize("threads", [1, 2])
def test_what_memory_has_no_room_for_is_a_memory_error(threads: int) -> None:
    side = 2**23
    with pytest.raises(MemoryError, match="the native core: not enough memory"):
        call("prpn_product", _1=side, _4=side, _6=1, _7=side, _8=side, _13=threads)
    with pytest.raises(MemoryError, match="the native core: not enough memory"):  # in each thread
        call(
            "prpn_parsing_scores", _5=0, _6=2**46, _10=lasting([0] * 3000, np.int32), _11=3000, _16=3000,
            _13=lasting([3000]), _18=threads,
        )  # fmt: skip


def filled(mirror: type[structs.Arguments]) -> structs.Arguments:
    """All sizes are 2, all arrays are there, all numbers are ones."""
    values = {structs.Size: 2, structs.Pointer: FLOATS}
    arguments = mirror()
    for name, kind in mirror._fields_:
        setattr(arguments, name, values.get(kind, 0))
    if isinstance(arguments, structs.Convolution):
        arguments.paired = 0
    if isinstance(arguments, structs.Reading):
        arguments.attends = arguments.keeps_past_gradient = 1
    arguments.threads = 1
    return arguments


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"activation": 3}, "unknown activation: 3"),
        ({"rows": 1}, "one row has no statistics"),
        ({"columns": HUGE}, "larger than any memory"),
        ({"threads": 0}, "the number of threads"),
        ({"x": None}, "no array: x"),
        ({"running_mean": None}, "no array: running_mean"),
        ({"d_y": FLOATS, "d_x": None}, "no array: d_x"),
    ],
)
def test_batch_norm_refuses(fields: dict[str, Any], message: str) -> None:
    arguments = filled(structs.BatchNorm)
    arguments.d_y = None
    native.required_library().prpn_batch_norm(ctypes.byref(arguments))
    for field, value in fields.items():
        setattr(arguments, field, value)
    with pytest.raises(ValueError, match=message):
        native.required_library().prpn_batch_norm(ctypes.byref(arguments))


STRUCTS = {
    "prpn_convolution_forward": structs.Convolution,
    "prpn_convolution_backward": structs.Convolution,
    "prpn_predicting_forward": structs.Predicting,
    "prpn_predicting_backward": structs.Predicting,
    "prpn_reading_forward": structs.Reading,
    "prpn_reading_backward": structs.Reading,
}


@pytest.mark.parametrize("name", STRUCTS)
def test_structs_are_checked_field_by_field(name: str) -> None:
    function, mirror = getattr(native.required_library(), name), STRUCTS[name]
    function(ctypes.byref(filled(mirror)))
    with pytest.raises(ValueError, match="no arguments"):
        function(None)
    for field, kind in mirror._fields_:
        if kind is structs.Size:
            for wrong in (-1, HUGE):
                arguments = filled(mirror)
                setattr(arguments, field, wrong)
                if "past" in field and "backward" in name:
                    continue  # read forwards only
                with pytest.raises(ValueError, match="the native core"):
                    function(ctypes.byref(arguments))
        elif kind is ctypes.c_float:
            arguments = filled(mirror)
            setattr(arguments, field, 1.5)
            with pytest.raises(ValueError, match="a rate is not between 0 and 1"):
                function(ctypes.byref(arguments))


OPTIONAL = {
    "prpn_convolution_forward": {"inputs", "weights"},
    "prpn_convolution_backward": {"bias", "result", "inputs", "weights"},
    "prpn_predicting_forward": set(),
    "prpn_predicting_backward": {"gates", "joined"},
    "prpn_reading_forward": {"recurrent_mask"},
    "prpn_reading_backward": {
        "key_inputs", "gates", "past_hidden", "past_cells", "hidden_bias", "recurrent_mask", "d_hidden", "d_cells",
        "d_now",
    },
}  # fmt: skip
"""What a function does not need; with a name that begins with d_ it is of the backward pass."""


@pytest.mark.parametrize("name", STRUCTS)
def test_structs_need_their_arrays(name: str) -> None:
    function, mirror = getattr(native.required_library(), name), STRUCTS[name]
    for field, kind in mirror._fields_:
        needed = field not in OPTIONAL[name] and ("backward" in name or not field.startswith("d_"))
        if kind is structs.Pointer:
            arguments = filled(mirror)
            setattr(arguments, field, None)
            if needed:
                with pytest.raises(ValueError, match="no array: "):
                    function(ctypes.byref(arguments))
            else:
                function(ctypes.byref(arguments))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"taps": 0}, "a convolution has taps"),
        ({"paired": 2}, "paired by threes"),
        ({"taps": 2, "paired": 3}, "paired by threes"),
        ({"taps": 3, "paired": 3, "steps": 1}, "no pair of outputs"),
        ({"taps": 3, "paired": 3, "inputs": None}, "no array: inputs"),
        ({"taps": 3, "paired": 3, "weights": None}, "no array: weights"),
    ],
)
def test_pairs_of_a_convolution_are_checked(fields: dict[str, Any], message: str) -> None:
    arguments = filled(structs.Convolution)
    for field, value in fields.items():
        setattr(arguments, field, value)
    with pytest.raises(ValueError, match=message):
        native.required_library().prpn_convolution_forward(ctypes.byref(arguments))


@pytest.mark.parametrize("name", [name for name in STRUCTS if "convolution" not in name])
def test_attention_has_slots(name: str) -> None:
    arguments = filled(STRUCTS[name])
    arguments.slots = 0
    with pytest.raises(ValueError, match="slot"):
        getattr(native.required_library(), name)(ctypes.byref(arguments))


def learned(**changed: Any) -> list[Learned]:
    fields = {name: torch.ones(3, 4) for name in ("weight", "gradient", "mean", "square")}
    return [Learned(**{**fields, "step": 1, **changed})]


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"step": 0}, ValueError, "steps are counted from 1"),
        ({"gradient": torch.ones(4, 3)}, ValueError, r"of shape \(3, 4\), not \(4, 3\)"),
        ({"square": torch.ones(4, 3).t()}, ValueError, "do not lie in memory in the same way"),
        ({"mean": torch.ones(3, 4, dtype=torch.float64)}, TypeError, "float64"),
        (dict.fromkeys(("weight", "gradient", "mean", "square"), torch.ones(3, 5)[:, :4]), ValueError, "has gaps"),
    ],
)
def test_adam_refuses(changed: dict[str, Any], error: type, message: str) -> None:
    native_adam(learned(), 0.1, (0.9, 0.999), 1e-8, 0.0, 1.0)
    with pytest.raises(error, match=message):
        native_adam(learned(**changed), 0.1, (0.9, 0.999), 1e-8, 0.0, 1.0)


def test_adam_needs_its_arrays() -> None:
    function, settings = native.required_library().prpn_adam, structs.Settings(0.1, 0.9, 0.999, 1e-8, 0, 1)
    for missing in ("weight", "gradient", "square"):
        one = structs.Learned(FLOATS, FLOATS, None, FLOATS, 4, 1)
        setattr(one, missing, None)
        with pytest.raises(ValueError, match=f"no array: {missing}"):
            function(ctypes.byref(one), 1, ctypes.byref(settings), 1)
    for wrong in (-1, HUGE):
        one = structs.Learned(FLOATS, FLOATS, None, FLOATS, wrong, 1)
        with pytest.raises(ValueError, match="the native core"):
            function(ctypes.byref(one), 1, ctypes.byref(settings), 1)
    with pytest.raises(ValueError, match="no array: tensors"):
        function(None, 1, ctypes.byref(settings), 1)
    with pytest.raises(ValueError, match="no settings"):
        function(None, 0, None, 1)


def test_an_address_is_of_what_was_announced() -> None:
    x = torch.zeros(3, 4)
    assert address(x, (3, 4)) == x.data_ptr()
    assert address(None, (3, 4)) is None
    for other in (x.double(), x.long(), x.to("meta")):
        with pytest.raises(TypeError, match="cannot read"):
            address(other, (3, 4))
    with pytest.raises(TypeError, match="as int64"):
        address(x, (3, 4), kind="int64")
    with pytest.raises(ValueError, match=r"of shape \(4, 3\), not \(3, 4\)"):
        address(x, (4, 3))
    wide = torch.zeros(3, 6)[:, :4]
    assert address(wide, (3, 4), "evenly spaced") == wide.data_ptr()
    assert address(x.t(), (4, 3), "anyhow") == x.data_ptr()
    for wrong, lying in ((wide, "by rows"), (x.t(), "by rows"), (x.t(), "evenly spaced")):
        with pytest.raises(ValueError, match=f"lies in memory {lying}"):
            address(wrong, wrong.shape, lying)  # type: ignore[arg-type]


def test_a_place_is_of_what_was_announced() -> None:
    x = np.zeros((3, 4), dtype=np.float32)
    assert place(x, np.float32, 3, 4) == x.ctypes.data
    with pytest.raises(TypeError, match="cannot read float32 as int32"):
        place(x, np.int32, 3, 4)
    with pytest.raises(ValueError, match=r"of shape \(12,\), not \(3, 4\)"):
        place(x, np.float32, 12)
    with pytest.raises(ValueError, match="by rows"):
        place(x.T, np.float32, 4, 3)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read only"):
        place_to_fill(x, np.float32, 3, 4)


WRONG_TENSORS: dict[str, Any] = {
    "decoder, rows": lambda: native_decode(torch.ones(2, 3), torch.ones(5, 4), torch.ones(5), LONG, None, 0),
    "decoder, bias": lambda: native_decode(torch.ones(2, 3), torch.ones(5, 3), torch.ones(4), LONG, None, 0),
    "decoder, targets": lambda: native_decode(torch.ones(3, 3), torch.ones(5, 3), torch.ones(5), LONG, None, 0),
    "decoder, gradients": lambda: native_decode(*DECODED, (torch.ones(2, 3), torch.ones(3, 5), torch.ones(5)), 0),
    "product, depth": lambda: native_product(torch.ones(2, 3), torch.ones(4, 5), None, None, 0),
    "product, start": lambda: native_product(torch.ones(2, 3), torch.ones(3, 5), torch.ones(3), None, 0),
    "product, out": lambda: native_product(torch.ones(2, 3), torch.ones(3, 5), None, torch.ones(5, 2).t(), 0),
    "batch norm": lambda: native_batch_norm(torch.ones(4, 3), nn.BatchNorm1d(2), "relu"),
}
LONG = torch.zeros(2, dtype=torch.int64)
DECODED = torch.ones(2, 3), torch.ones(5, 3), torch.ones(5), LONG


@pytest.mark.parametrize("what", WRONG_TENSORS)
def test_shapes_must_agree(what: str) -> None:
    with pytest.raises(ValueError, match="the native core wants an array"):
        WRONG_TENSORS[what]()


@pytest.mark.parametrize(
    "use",
    [
        lambda: native_decode(*(x.double() for x in DECODED[:3]), LONG, None, 0),
        lambda: native_decode(*DECODED[:3], LONG.int(), None, 0),
        lambda: native_product(torch.ones(2, 3).double(), torch.ones(3, 5), None, None, 0),
        lambda: native_batch_norm(torch.ones(4, 3).double(), nn.BatchNorm1d(3).double(), "relu"),
        lambda: HashedMask(1, 0.5).apply_to(torch.ones(4, 3).double()),
        lambda: native_stick(torch.ones(4, 3).double()),
    ],
)
def test_other_kinds_of_numbers_are_refused(use: Any) -> None:
    with pytest.raises(TypeError, match="the native core cannot read torch"):
        use()


def test_the_recurrence_refuses_what_does_not_fit() -> None:
    from prpn.config import ModelConfig
    from prpn.kernels.native_recurrence import HashedMasks
    from prpn.model.reading import ReadingLayer

    layer = ReadingLayer(ModelConfig(embedding=4, hidden=4, memory_slots=3), first=True)
    none = HashedMask(0, 0.0)
    masks = HashedMasks(none, none, none, None)
    past = torch.zeros(3, 2, 4)

    def read(**changed: Tensor) -> None:
        given = {
            "gate_inputs": torch.randn(5, 2, 16), "key_inputs": torch.randn(5, 2, 4), "key_weight": torch.randn(4, 4),
            "gates": torch.ones(5, 2, 3), "past_hidden": past, "past_cells": past,
        }  # fmt: skip
        native_recurrence(layer, **{**given, **changed}, masks=masks)  # type: ignore[arg-type]

    read()
    for changed in (
        {"gate_inputs": torch.randn(5, 2, 12)}, {"key_inputs": torch.randn(5, 3, 4)}, {"key_weight": torch.randn(4, 3)},
        {"past_cells": torch.zeros(3, 1, 4)}, {"gates": torch.ones(5, 2, 2)}, {"key_weight": torch.randn(4, 4).t()},
    ):  # fmt: skip
        with pytest.raises(ValueError, match="the native core wants an array"):
            read(**changed)


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"_2": ENDS[1]}, "a sentence ends where it cannot"),
        ({"_2": ENDS[2]}, "a sentence ends where it cannot"),
        ({"_2": ENDS[3]}, "words after the last sentence"),
        ({"_1": 9}, "words after the last sentence"),
        ({"_7": 3}, "not room for as many spans"),
        ({"_4": 4}, "unknown builder: 4"),
    ],
)
def test_spans_are_of_sentences_that_are_there(changed: dict[str, Any], cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        call("prpn_parsing_spans", **changed)


def test_parsing_refuses_arrays_that_do_not_fit() -> None:
    network = random_parser(channels=16).network
    ids, ends = np.array([1, 2, 3], dtype=np.int32), np.array([3])
    rows = np.empty((3, network.rows.windows * network.rows.channels), dtype=np.float32)
    out = np.empty(3, dtype=np.float32)
    for wrong in (ids.astype(np.int64), ids[::2]):
        with pytest.raises((TypeError, ValueError), match="the native core"):
            parsing.make_rows(network.rows.embedding, network.rows._kernel, wrong, rows)
    with pytest.raises(ValueError, match="the native core wants"):
        parsing.make_rows(network.rows.embedding, network.rows._kernel, ids, rows[:2])
    with pytest.raises(IndexError, match="word 99 at 0"):
        parsing.make_rows(network.rows.embedding, network.rows._kernel, ids + np.int32(98), rows)
    found = network.rows.look_up(ids)
    assert found is not None
    table, slots = found
    parsing.scores(network, table, slots, 0, ends, out, 0)
    for arguments in (
        (slots.astype(np.int64), 0, ends, out, 0), (slots, 0, ends.astype(np.int32), out, 0),
        (slots, 0, ends, out.astype(np.float64), 0), (slots, 0, ends, np.empty(4, dtype=np.float32), 0),
        (slots + np.int32(1 << 20), 0, ends, out, 0), (slots, 1, ends, out, 0), (slots[:2], 0, ends, out, 0),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError, IndexError), match="the native core"):
            parsing.scores(network, table, *arguments)


def new_text(form: Any = "jsonl", encode: Any = lambda words: [0 for _ in words]) -> parsing.TextWithTrees:
    return parsing.TextWithTrees(
        form, lambda chunk, _: [Piece(chunk, 0, len(chunk))], encode, {}, [], lowercase=False, unknown=-1
    )


def test_a_text_is_worked_on_in_order() -> None:
    text, library, out = new_text(), native.required_library(), [ctypes.c_void_p() for _ in range(3)]
    places = [ctypes.byref(place) for place in out]
    with pytest.raises(ValueError, match="no block was read"):
        library.prpn_text_words(text._handle, 1, *places)
    library.prpn_text_read(text._handle, b"a b c\n", 6, 1, places[0])
    assert out[0].value == 3
    for early in (
        lambda: library.prpn_text_words(text._handle, 1, *places),
        lambda: library.prpn_text_write(text._handle, FLOATS, FLOATS, 0, 0, 1, places[0]),
        lambda: library.prpn_text_part(text._handle, 0, *places[:2]),
    ):
        with pytest.raises(ValueError, match="the native core"):
            early()
    ids, counts = lasting([0] * 6, np.int32), lasting([1] * 3)
    for words, size, all_, some, chunks in (
        (b"a\nb\nc\n", 6, 3, counts, 2), (b"a\nb\n", 4, 3, counts, 3), (b"a\nb\nc\n", 6, 2, counts, 3),
        (b"a\nb\nc\n", 6, 3, lasting([4, -2, 1]), 3), (b"a\nb\nc\n", 6, 3, lasting([2**62] * 3), 3),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"counts|as many words"):
            library.prpn_text_define(text._handle, words, size, ids, ids, all_, some, chunks)
    library.prpn_text_define(text._handle, b"a\nb\nc\n", 6, ids, ids, 3, counts, 3)
    with pytest.raises(ValueError, match="no words are asked for"):
        library.prpn_text_define(text._handle, b"a\nb\nc\n", 6, ids, ids, 3, counts, 3)
    library.prpn_text_words(text._handle, 1, *places)
    with pytest.raises(ValueError, match="not as many scores as words"):
        library.prpn_text_write(text._handle, FLOATS, FLOATS, 2, 0, 1, places[0])
    for scores, distances, name in ((None, FLOATS, "scores"), (FLOATS, None, "distances")):
        with pytest.raises(ValueError, match=f"no array: {name}"):
            library.prpn_text_write(text._handle, scores, distances, 3, 0, 1, places[0])
    with pytest.raises(ValueError, match="unknown builder: 4"):
        library.prpn_text_write(text._handle, FLOATS, FLOATS, 3, 4, 1, places[0])
    library.prpn_text_write(text._handle, FLOATS, FLOATS, 3, 0, 1, places[0])
    for part in (-1, 1):
        with pytest.raises(IndexError, match=f"part {part} at 0 is not one of 1"):
            library.prpn_text_part(text._handle, part, *places[:2])


def test_a_text_is_made_and_asked_with_sense() -> None:
    library, handle = native.required_library(), ctypes.c_void_p()
    for wrong in ((5, 0, 0, 9, 9), (-1, 0, 0, 9, 9), (0, 0, -2, 9, 9), (0, 0, 0, -1, 9), (0, 0, 0, 9, -1)):
        with pytest.raises(ValueError, match="the native core"):
            library.prpn_text_new(*wrong, ctypes.byref(handle))
    assert handle.value is None
    library.prpn_text_delete(None)
    with pytest.raises(ValueError, match="no text"):
        library.prpn_text_read(None, b"", 0, 1, ctypes.byref(handle))
    text = new_text()
    for block, size in ((None, 3), (b"", -1), (b"", HUGE)):
        with pytest.raises(ValueError, match="the native core"):
            library.prpn_text_read(text._handle, block, size, 1, ctypes.byref(handle))
    with pytest.raises(ValueError, match="not as many words as ids"):
        library.prpn_text_plain_words(text._handle, b"a\nb", 3, NUMBERS, 2)
    scores = np.zeros(2, dtype=np.float32)
    text.read(b"a b c\n")
    with pytest.raises(ValueError, match=r"wants an array of shape \(3,\), not \(2,\)"):
        next(text.write(scores, None, "paper"))


def test_words_that_were_asked_for_in_vain_are_asked_for_again() -> None:
    """What a chunk stands for is not known before its words are; an error between must not make it empty."""
    answers: list[Any] = [KeyError("no answer"), [7, 8]]

    def encode(_: Any) -> list[int]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return list(answer)

    text = new_text(encode=encode)
    with pytest.raises(KeyError):
        text.read(b"a b\n")
    ids, ends = text.read(b"a b\n")
    assert (ids.tolist(), ends.tolist()) == ([7, 8], [2])


def test_one_thread_uses_a_text_at_a_time() -> None:
    text, block = new_text("brackets"), b"a " * 200_000 + b"\n"
    text.read(block)

    def read(_: int) -> str:
        try:
            text.read(block)
        except ValueError as error:
            return str(error)
        return "read"

    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(read, range(40)))
    assert all(message == "read" or message.startswith("the native core: ") for message in found)
