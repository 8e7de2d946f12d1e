"""Message passing (Eq. 2-3)."""

from __future__ import annotations

import torch
from torch import Tensor


def normalized_adjacency(adjacency: Tensor) -> Tensor:
    r"""Eq. 2 for a small dense graph: :math:`\tilde D^{-1/2}(A+I)\tilde D^{-1/2}`.

    ``adjacency`` is ``(..., n, n)`` and non-negative. Self-connections are always added, also where
    the diagonal is not zero.
    """
    looped = adjacency + torch.eye(
        adjacency.shape[-1], dtype=adjacency.dtype, device=adjacency.device
    )
    scale = looped.sum(-1).rsqrt()
    return scale.unsqueeze(-1) * looped * scale.unsqueeze(-2)


def propagate(operator: Tensor, x: Tensor, hops: int) -> Tensor:
    r"""Eq. 3: :math:`\hat X = \hat A^k X`, one product per hop, never a power of the matrix."""
    for _ in range(hops):
        x = operator @ x
    return x
