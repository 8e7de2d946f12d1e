"""How features are scaled, by blocks of rows: the same numbers as :meth:`gcsr.Graph.scaled`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Scale = Callable[[Tensor], Tensor]


def row_scale(x: Tensor) -> Tensor:
    """Every row divided by its absolute sum; rows of zeros stay zero."""
    sums = x.abs().sum(1, keepdim=True)
    return x / torch.where(sums > 0, sums, torch.ones_like(sums))


def standard_scale(training_rows: Tensor) -> Scale:
    """Every column to mean 0 and deviation 1 over the training rows; constant ones only centred."""
    rows = training_rows.double()
    deviation = rows.std(0, correction=0)
    deviation = torch.where(deviation > 0, deviation, torch.ones_like(deviation))
    mean = rows.mean(0).float()
    return lambda x: (x - mean) / deviation.float()
