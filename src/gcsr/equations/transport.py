"""Optimal transport between the signals of two graphs (Petric Maretic et al., 2019), for SGDD."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gcsr.equations.propagation import normalized_adjacency

# What is added to the Laplacian's diagonal, and the smallest singular value that is inverted.
SHIFT, LEAST_SINGULAR = 0.01, 0.009


def root_trace(matrix: Tensor) -> Tensor:
    r""":math:`\mathrm{tr}(M^{1/2})` of positive definite matrices ``(..., n, n)``.

    Its gradient is :math:`\tfrac12 M^{-1/2}`, which is smooth. Differentiating through an
    eigendecomposition instead divides by differences of eigenvalues, and those can be zero. A matrix
    that is not finite has the trace ``nan``.
    """
    result: Tensor = _RootTrace.apply(matrix)  # type: ignore[no-untyped-call]
    return result


class _RootTrace(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: Tensor) -> Tensor:
        finite = torch.isfinite(matrix).all(-1).all(-1)
        identity = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
        # A decomposition of what is not finite would stop the program.
        safe = torch.where(finite[..., None, None], (matrix + matrix.mT) / 2, identity)
        values, vectors = torch.linalg.eigh(safe)
        roots = values.clamp_min(torch.finfo(values.dtype).tiny).sqrt()
        ctx.save_for_backward(roots, vectors)
        return torch.where(finite, roots.sum(-1), torch.nan)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        roots, vectors = ctx.saved_tensors
        half: Tensor = (vectors / (2 * roots).unsqueeze(-2)) @ vectors.mT
        return gradient[..., None, None] * half


def transport_plan(strength: Tensor, rounds: int) -> Tensor:
    """Rows that sum to one and columns that share their mass equally, by Sinkhorn's scaling.

    ``strength`` may be any real matrix ``(..., m, n)``; its exponentials are scaled.
    """
    plan = strength.softmax(-1)
    share = strength.shape[-2] / strength.shape[-1]
    for _ in range(rounds):
        plan = share * plan / plan.sum(-2, keepdim=True)
        plan = plan / plan.sum(-1, keepdim=True)
    return plan


def signal_transport(adjacency: Tensor, plan: Tensor, real_inverse: Tensor) -> Tensor:
    r"""How far the smooth signals of A' are from those of the real graph under a plan P.

    .. math:: \bigl| n' \mathrm{tr}(L'^{-1})
              - 2\,\mathrm{tr}\bigl((L'^{-1/2} P^\top L^{-1} P L'^{-1/2})^{1/2}\bigr) \bigr|

    with :math:`L = (1+.01)I - \hat A`, and ``real_inverse`` its inverse on the real graph. With
    :math:`L' = CC^\top` the matrix under the root has the eigenvalues of
    :math:`C^{-1}P^\top L^{-1}PC^{-\top}`, so that no root of :math:`L'` is needed.
    """
    nodes = adjacency.shape[-1]
    identity = torch.eye(nodes, dtype=adjacency.dtype, device=adjacency.device)
    factor, _ = torch.linalg.cholesky_ex(shifted_laplacian(adjacency))
    inverse = torch.linalg.solve_triangular(factor, identity.expand_as(factor), upper=False)
    aligned = plan.mT @ real_inverse @ plan
    mixed = inverse @ aligned @ inverse.mT + 1e-6 * identity
    distance: Tensor = nodes * inverse.square().sum((-2, -1)) - 2 * root_trace(mixed)
    return distance.abs()


def shifted_laplacian(adjacency: Tensor) -> Tensor:
    r""":math:`(1 + .01) I - \hat A`: positive definite for every non-negative adjacency."""
    return shifted(normalized_adjacency(adjacency))


def shifted(operator: Tensor) -> Tensor:
    """The same for a normalized adjacency, or for some rows and columns of one."""
    identity = torch.eye(operator.shape[-1], dtype=operator.dtype, device=operator.device)
    return (1 + SHIFT) * identity - operator


def released_signal_transport(adjacency: Tensor, plan: Tensor, real_inverse: Tensor) -> Tensor:
    r"""The same as SGDD's released code computes it: adjacencies, a plan that is not scaled.

    .. math:: \bigl| n' \mathrm{tr}(A'^+) - 2\sum_k \sqrt{\max(\lambda_k, 2\cdot10^{-20})} \bigr|,
              \qquad \lambda = \mathrm{eig}(A'^{+1/2}P^\top R^+PA'^{+1/2})

    It stops being finite when two singular values of A' meet.
    """
    left, singular, right = torch.linalg.svd(adjacency)
    kept = kept_singular_values(singular)
    inverse = torch.where(kept, 1 / singular, 0)
    trace = (right.mT * inverse.unsqueeze(-2) * left).sum((-2, -1))
    root = (right.mT * inverse.sqrt().unsqueeze(-2)) @ left.mT
    values = torch.linalg.eigvalsh(root @ plan.mT @ real_inverse @ plan @ root)
    roots: Tensor = values.clamp_min(2e-20).sqrt().sum(-1)
    distance: Tensor = adjacency.shape[-1] * trace - 2 * roots
    return distance.abs()


def kept_singular_values(singular: Tensor) -> Tensor:
    """All but the smallest, and that too unless it is tiny."""
    place = torch.arange(singular.shape[-1], device=singular.device)
    return (place < singular.shape[-1] - 1) | (singular >= LEAST_SINGULAR)
