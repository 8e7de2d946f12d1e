"""Self-expressive reconstruction of the structure (Eq. 8-10), and its momentum (Eq. 14-15)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def self_expression(
    x: Tensor, prior: Tensor, history: Tensor, alpha: Tensor | float, beta: Tensor | float
) -> Tensor:
    r"""Eq. 9, the closed-form minimizer of Eq. 8 (:func:`self_expression_objective`).

    .. math:: Z = (X'X'^\top + (\alpha+\beta) I)^{-1} (X'X'^\top + \alpha P + \beta Z_h)

    by a Cholesky factorization. With :math:`S = X'X'^\top + (\alpha+\beta)I` this equals
    :math:`I + S^{-1}B`, :math:`B = \alpha(P-I) + \beta(Z_h-I)`, which loses fewer digits because
    nearly equal matrices are subtracted before, not after, the solve.
    """
    return self_expression_of_gram(x @ x.mT, prior, history, alpha, beta)


def self_expression_of_gram(
    gram: Tensor, prior: Tensor, history: Tensor, alpha: Tensor | float, beta: Tensor | float
) -> Tensor:
    """:func:`self_expression` for features of which X'X'ᵀ is known; differentiable in it."""
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    pull = alpha * (prior - identity) + beta * (history - identity)
    correction: Tensor = _Solve.apply(  # type: ignore[no-untyped-call]
        gram + (alpha + beta) * identity, pull
    )
    return identity + correction


class _Solve(torch.autograd.Function):
    r""":math:`C = S^{-1} B` for a positive definite S, differentiable in S alone.

    :math:`dC = -S^{-1}\, dS\, C`, so the gradient is :math:`-(S^{-1} \bar C) C^\top`: another solve
    with the same factor, where differentiating the factorization itself would take several.
    """

    @staticmethod
    def forward(ctx: Any, system: Tensor, right: Tensor) -> Tensor:
        # cholesky_ex does not wait for the device; the system is positive definite by construction.
        factor, _ = torch.linalg.cholesky_ex(system)
        solution = positive_solve(factor, right)
        ctx.save_for_backward(factor, solution)
        return solution

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        factor, solution = ctx.saved_tensors
        return -(positive_solve(factor, gradient) @ solution.mT), None


def positive_solve(factor: Tensor, right: Tensor) -> Tensor:
    """The solution of a positive definite system of which the Cholesky factor is known."""
    half = torch.linalg.solve_triangular(factor, right, upper=False)
    solution: Tensor = torch.linalg.solve_triangular(factor.mT, half, upper=True)
    return solution


def symmetric_adjacency(z: Tensor) -> Tensor:
    r"""Eq. 10: :math:`A' = (|Z| + |Z|^\top)/2`."""
    magnitude = z.abs()
    return (magnitude + magnitude.mT) / 2


def self_expression_objective(
    z: Tensor, x: Tensor, prior: Tensor, history: Tensor, alpha: float, beta: float
) -> Tensor:
    r"""Eq. 8: :math:`|X'^\top - X'^\top Z|^2 + \alpha|Z-P|^2 + \beta|Z-Z_h|^2`."""
    residual = x.mT - x.mT @ z
    return (
        residual.square().sum()
        + alpha * (z - prior).square().sum()
        + beta * (z - history).square().sum()
    )


def momentum_update(matrix: Tensor, adjacency: Tensor, keep: float) -> Tensor:
    r""":math:`P \leftarrow \tau P + (1-\tau) A'`; likewise :math:`Z_h` with :math:`\gamma`."""
    return keep * matrix + (1 - keep) * adjacency
