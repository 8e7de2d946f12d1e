"""Self-expressive reconstruction of the structure (Eq. 8-10)."""

from __future__ import annotations

import torch
from torch import Tensor


def self_expression(
    x: Tensor, prior: Tensor, history: Tensor, alpha: Tensor | float, beta: Tensor | float
) -> Tensor:
    r"""Eq. 9, the closed-form minimiser of Eq. 8 (:func:`self_expression_objective`).

    .. math:: Z = (X'X'^\top + (\alpha+\beta) I)^{-1} (X'X'^\top + \alpha P + \beta Z_h)

    by a Cholesky factorisation. With :math:`S = X'X'^\top + (\alpha+\beta)I` this equals
    :math:`I + S^{-1}(\alpha(P-I) + \beta(Z_h-I))`, which loses fewer digits because nearly equal
    matrices are subtracted before, not after, the solve.
    """
    identity = torch.eye(x.shape[-2], dtype=x.dtype, device=x.device)
    system = x @ x.mT + (alpha + beta) * identity
    # cholesky_ex does not wait for the device; the system is positive definite by construction.
    factor, _ = torch.linalg.cholesky_ex(system)
    pull = alpha * (prior - identity) + beta * (history - identity)
    half = torch.linalg.solve_triangular(factor, pull, upper=False)
    correction: Tensor = torch.linalg.solve_triangular(factor.mT, half, upper=True)
    return identity + correction


def symmetric_adjacency(z: Tensor) -> Tensor:
    r"""Eq. 10: :math:`A' = (|Z| + |Z|^\top)/2`."""
    magnitude = z.abs()
    return (magnitude + magnitude.mT) / 2


def self_expressive_adjacency(
    x: Tensor, prior: Tensor, history: Tensor, alpha: Tensor | float, beta: Tensor | float
) -> Tensor:
    """Eq. 9 followed by Eq. 10: the structure that the condensed features express."""
    return symmetric_adjacency(self_expression(x, prior, history, alpha, beta))


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
