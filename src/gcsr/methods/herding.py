"""Herding: training nodes whose mean embedding follows that of their class (Welling, 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gcsr.methods.selection import EmbeddedSelection


def herd(embeddings: Tensor, count: int) -> Tensor:
    r"""Indices of ``count`` rows whose running mean stays near the mean of all (Welling, 2009).

    The i-th choice, i = 1, 2, ..., is the unused row e that minimizes
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


@dataclass(frozen=True, kw_only=True)
class Herding(EmbeddedSelection):
    """Real training nodes, chosen so that their mean stays near the mean of their class."""

    name: ClassVar[str] = "herding"
    summary: ClassVar[str] = "training nodes whose mean embedding is that of their class"

    _choose = staticmethod(herd)
