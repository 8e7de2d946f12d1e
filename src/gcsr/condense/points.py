"""Condensed features and their Gram matrix, which structure and student both need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Points:
    r"""X' of every graph, ``(graphs, n', d)``; X'X'ᵀ is computed once per iteration.

    To autograd both are inputs of their own. :meth:`gradients` puts their gradients together with one
    product, :math:`\bar X + (\bar K + \bar K^\top) X`, where differentiating :math:`K = XX^\top` would
    take two.
    """

    x: Tensor

    @classmethod
    def of(cls, x: Tensor) -> Points:
        """Points to differentiate with respect to."""
        return cls(x.detach().requires_grad_())

    @cached_property
    def gram(self) -> Tensor:
        """X'X'ᵀ."""
        with torch.no_grad():
            gram = torch.bmm(self.x, self.x.mT)
        return gram.requires_grad_(self.x.requires_grad)

    def gradients(self, loss: Tensor, others: Sequence[Tensor] = ()) -> tuple[Tensor, ...]:
        """Gradients of ``loss`` with respect to X' and to other inputs."""
        # Not computed just to be differentiated.
        used = (self.gram,) if "gram" in vars(self) else ()
        found = torch.autograd.grad(
            loss, (self.x, *used, *others), allow_unused=True, materialize_grads=True
        )
        gradient, rest = found[0], found[1 + len(used) :]
        for bar_gram in found[1 : 1 + len(used)]:
            gradient = torch.baddbmm(gradient, bar_gram + bar_gram.mT, self.x.detach())
        return (gradient, *rest)
