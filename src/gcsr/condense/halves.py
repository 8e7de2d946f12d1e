"""Groups of equal size: rows cut in halves, and these again, where they vary much.

A condensed node counts as much as any other, however many nodes stand behind it, so that groups of
unequal size bend the data. Here every group has as many rows as the next, give or take one.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

# Steps of the power method towards the direction in which rows vary most. Two come close to it where
# one direction stands out; where none does, another beginning leads to another cut that is as good.
STEPS = 2


def halves_of_halves(x: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """The group of every row, ``0`` to ``count - 1``; ``count`` is at most the number of rows.

    Rows are sorted along a direction of large variance and cut in the middle (or where as many rows
    per group lie on both sides), until there are ``count`` parts. Time is that of some passes over the
    rows for each of the ``log2(count)`` levels.
    """
    groups = torch.zeros(x.shape[0], dtype=torch.int64, device=x.device)

    def cut(rows: Tensor, first: int, last: int) -> None:
        """Give ``rows`` the groups from ``first`` up to, without, ``last``."""
        if last - first == 1:
            groups[rows] = first
            return
        middle = (first + last) // 2
        size = rows.numel() * (middle - first) // (last - first)
        order = rows[_along_most_variance(x[rows], generator).argsort(stable=True)]
        cut(order[:size], first, middle)
        cut(order[size:], middle, last)

    cut(torch.arange(x.shape[0], device=x.device), 0, count)
    return groups


def _along_most_variance(x: Tensor, generator: torch.Generator) -> Tensor:
    """Where rows lie along a direction in which they vary much."""
    x = x - x.mean(0)
    # Squares of squares would overflow; a power of two changes no digit.
    _, exponent = math.frexp(float(x.abs().max()))
    x = x * 2.0 ** -max(-120, min(120, exponent))
    direction = torch.randn(x.shape[1], generator=generator).to(x)
    for _ in range(STEPS):
        direction = x.T @ (x @ direction)
        # Rows that are all the same have no direction, and stay in their order.
        direction = direction / direction.norm().clamp_min(torch.finfo(x.dtype).tiny)
    return x @ direction
