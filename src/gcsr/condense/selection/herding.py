"""Herding: a few rows whose running mean stays near the mean of all (Welling, 2009)."""

from __future__ import annotations

import torch
from torch import Tensor


def herd(embeddings: Tensor, count: int) -> Tensor:
    r"""Indices of ``count`` rows (at most as many as there are), greedily.

    The i-th choice, i = 1, 2, ..., is the unused row e that minimises
    :math:`\| i \mu - \sum_{chosen} e' - e \|_2`, where :math:`\mu` is the mean of all rows. Ties go
    to the first row.
    """
    if count > embeddings.shape[0]:
        raise ValueError(f"{count} rows cannot be chosen from {embeddings.shape[0]}")
    rows = embeddings.double()
    mean = rows.mean(0)
    used = torch.zeros(rows.shape[0], dtype=torch.bool, device=rows.device)
    missing = mean.clone()
    chosen: list[int] = []
    for _ in range(count):
        distance = (missing - rows).square().sum(1).masked_fill(used, torch.inf)
        newest = int(distance.argmin())
        chosen.append(newest)
        used[newest] = True
        missing = missing + mean - rows[newest]
    return torch.tensor(chosen, dtype=torch.long)
