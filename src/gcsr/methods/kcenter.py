"""K-Center: training nodes that cover their class (Sener and Savarese, 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gcsr.methods.selection import EmbeddedSelection


def k_center(embeddings: Tensor, count: int) -> Tensor:
    """Indices of ``count`` rows such that no row is far from all of them (Sener and Savarese, 2018).

    The first is the row nearest the mean; each further one is the row whose distance to the nearest
    chosen row is largest. Ties go to the first row; no row is chosen twice.
    """
    if count > embeddings.shape[0]:
        raise ValueError(f"{count} rows cannot be chosen from {embeddings.shape[0]}")
    rows = embeddings.double()
    distance = torch.full((rows.shape[0],), torch.inf, dtype=rows.dtype, device=rows.device)
    chosen: list[int] = []
    newest = int(_squared_distances(rows, rows.mean(0)).argmin()) if count else -1
    while len(chosen) < count:
        chosen.append(newest)
        distance = torch.minimum(distance, _squared_distances(rows, rows[newest]))
        # Rows that tie with a chosen one also have distance zero; below zero is never the largest.
        distance[newest] = -1.0
        newest = int(distance.argmax())
    return torch.tensor(chosen, dtype=torch.long)


def _squared_distances(rows: Tensor, point: Tensor) -> Tensor:
    return (rows - point).square().sum(1)


@dataclass(frozen=True, kw_only=True)
class KCenter(EmbeddedSelection):
    """Real training nodes, chosen so that no node of their class is far from all of them."""

    name: ClassVar[str] = "kcenter"
    summary: ClassVar[str] = "training nodes that cover the embeddings of their class"

    _choose = staticmethod(k_center)
