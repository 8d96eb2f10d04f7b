"""What the tests of the native core share: leaving them out where there is none, and comparing fp32 numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor

from prpn.kernels import native

FP32, BF16, TILES = range(3)
"""Formats of a product, as native/packing.h numbers them; PyTorch's side never asks for tiles by name."""

needs_native_core = pytest.mark.skipif(native.library() is None, reason=native.complaint() or "-")


@contextmanager
def threads_set(count: int) -> Iterator[None]:
    """Use so many threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def assert_close(found: Tensor, expected: Tensor, tolerance: float, name: str) -> None:
    """Equal up to `tolerance` times the largest number of what is expected, or 0.05 if that is less."""
    assert found.shape == expected.shape, name
    assert found.isfinite().all(), name
    if expected.numel():
        allowed = tolerance * max(0.05, expected.abs().max().item())
        worst = (found.double() - expected.double()).abs().max().item()
        assert worst <= allowed, f"{name}: {worst:.3g} apart, {allowed:.3g} allowed"


def rounded(x: Tensor) -> Tensor:
    """X rounded to bf16, as fp32."""
    return x.bfloat16().float()
