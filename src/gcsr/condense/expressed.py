r"""From X'X'ᵀ to the normalised structure in one function with one hand-written adjoint.

The same as :func:`~gcsr.equations.self_expression_of_gram`, then
:func:`~gcsr.equations.symmetric_adjacency`, then :func:`~gcsr.equations.normalised_adjacency`, which
tests compare it with. On matrices this small the bookkeeping between them takes as long as they do.

With :math:`S = X'X'^\top + (\alpha+\beta) I`, :math:`C = S^{-1}(\alpha(P-I) + \beta(Z_h-I))`,
:math:`Z = I + C`, :math:`A' = (|Z| + |Z|^\top)/2`, :math:`L = A' + I`, :math:`u = (L1)^{-1/2}` and
:math:`\hat A' = uu^\top \circ L`, a gradient G of :math:`\hat A'` with symmetric part :math:`G_s` gives

.. math:: \bar Z = \mathrm{sign}(Z) \circ (uu^\top \circ G_s - (v 1^\top + 1 v^\top)/2), \quad
          v = u^2 \circ (G_s \circ \hat A') 1, \qquad \bar S = -(S^{-1} \bar Z)\, C^\top.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gcsr.equations.self_expression import positive_solve


def expressed_operator(
    gram: Tensor, prior: Tensor, history: Tensor, alpha: Tensor, beta: Tensor
) -> tuple[Tensor, Tensor]:
    """The normalised structure that features express, differentiable in X'X'ᵀ, and A' itself."""
    operator, adjacency = _Expressed.apply(  # type: ignore[no-untyped-call]
        gram, prior, history, alpha, beta
    )
    return operator, adjacency


class _Expressed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, gram: Tensor, prior: Tensor, history: Tensor, alpha: Tensor, beta: Tensor
    ) -> tuple[Tensor, Tensor]:
        both = alpha + beta
        pull = alpha * prior + beta * history
        system = gram.clone()
        pull.diagonal(dim1=-2, dim2=-1).sub_(both.squeeze(-1))
        system.diagonal(dim1=-2, dim2=-1).add_(both.squeeze(-1))
        # cholesky_ex does not wait for the device; the system is positive definite by construction.
        factor, _ = torch.linalg.cholesky_ex(system)
        correction = positive_solve(factor, pull)
        z = correction.clone()
        z.diagonal(dim1=-2, dim2=-1).add_(1)
        magnitude = z.abs()
        adjacency = (magnitude + magnitude.mT).mul_(0.5)
        looped = adjacency.clone()
        looped.diagonal(dim1=-2, dim2=-1).add_(1)
        scale = looped.sum(-1, keepdim=True).rsqrt_()
        scales = scale * scale.mT
        operator = looped.mul_(scales)
        ctx.save_for_backward(factor, correction, z, scale, scales, operator)
        ctx.mark_non_differentiable(adjacency)
        return operator, adjacency

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        factor, correction, z, scale, scales, operator = ctx.saved_tensors
        both_ways = gradient + gradient.mT
        v = (both_ways * operator).sum(-1, keepdim=True).mul_(scale.square()).mul_(0.5)
        twice_bar_z = both_ways.mul_(scales).sub_(v).sub_(v.mT).mul_(z.sign())
        bar_system = torch.bmm(positive_solve(factor, twice_bar_z), correction.mT).mul_(-0.5)
        return bar_system, None, None, None, None
