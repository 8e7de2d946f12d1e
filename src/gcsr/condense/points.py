"""Condensed features and their Gram matrix, which structure and student both need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Points:
    """X' of every graph, ``(graphs, n', d)``; X'X'ᵀ is computed once per iteration."""

    x: Tensor

    @cached_property
    def gram(self) -> Tensor:
        """X'X'ᵀ."""
        result: Tensor = _Gram.apply(self.x)  # type: ignore[no-untyped-call]
        return result


class _Gram(torch.autograd.Function):
    """XXᵀ, whose gradient is one product with the symmetric part instead of two products."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.bmm(x, x.mT)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return torch.bmm(gradient + gradient.mT, x)
