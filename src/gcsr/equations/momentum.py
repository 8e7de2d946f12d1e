"""Bootstrapped regularizers (Eq. 14-15)."""

from __future__ import annotations

from torch import Tensor


def momentum_update(matrix: Tensor, adjacency: Tensor, keep: float) -> Tensor:
    r""":math:`P \leftarrow \tau P + (1-\tau) A'`; likewise :math:`Z_h` with :math:`\gamma`."""
    return keep * matrix + (1 - keep) * adjacency
