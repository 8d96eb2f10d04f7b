"""`torch.autocast` around a network: factors of its large products are rounded, and nothing else is.

    autocast:   Linear(x) = bf16(x) · bf16(W)ᵀ + b    in fp32 again, so that every step gets one type

PyTorch would round the results, too. But sharp gates multiply an error in the distances, the recurrence adds to its own
past, and the native core reads fp32. So each of the three networks steps out of autocast and takes it as a wish:
the native core multiplies in bf16 where the processor does that faster, as while a model learns; PyTorch's products are
rounded in the type that was asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from prpn.kernels import learning

Method = TypeVar("Method", bound=Callable[..., Any])

_wished: ContextVar[torch.dtype | None] = ContextVar("wished", default=None)
"""The type of products that autocast asks for."""


def heeding_autocast(method: Method) -> Method:
    """A method of a network, which runs in the type of its weights whatever autocast surrounds it."""

    @functools.wraps(method)
    def precise(self: nn.Module, *given: Any, **named: Any) -> Any:
        weight = next(self.parameters(), None)
        if weight is None or not torch.is_autocast_enabled(kind := weight.device.type):
            return method(self, *given, **named)
        before = _wished.set(torch.get_autocast_dtype(kind))
        try:
            with torch.autocast(kind, enabled=False), learning():
                widened = (_widened(x, weight.dtype) for x in given)
                return method(self, *widened, **{name: _widened(x, weight.dtype) for name, x in named.items()})
        finally:
            _wished.reset(before)

    return cast(Method, precise)


def backward_without_autocast(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A backward pass that can run once, precisely even where `backward` was called under autocast."""

    @functools.wraps(backward)
    def precise(ctx: Any, *gradients: Tensor | None) -> Any:
        kinds = {gradient.device.type for gradient in gradients if gradient is not None}
        if not any(map(torch.is_autocast_enabled, kinds)):
            return backward(ctx, *gradients)
        with torch.autocast(kinds.pop(), enabled=False):
            return backward(ctx, *gradients)

    return once_differentiable(precise)


def rounded_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """PyTorch's `linear`, its factors rounded if autocast asks for that."""
    kind = _wished.get()
    if kind is None:
        return nn.functional.linear(x, weight, bias)
    result = nn.functional.linear(x.to(kind), weight.to(kind)).to(x.dtype)
    return result if bias is None else result + bias


def _widened(value: Any, kind: torch.dtype) -> Any:
    """A tensor that autocast has made narrower than the weights; anything else as it is."""
    narrow = isinstance(value, Tensor) and value.dtype in (torch.bfloat16, torch.float16)
    return value.to(kind) if narrow else value
