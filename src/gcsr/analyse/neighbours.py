"""Which real training nodes a condensed node is nearest to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gcsr.errors import require
from gcsr.progress import Progress, silent

BLOCK_BYTES = 64 * 2**20


@dataclass(frozen=True, eq=False)
class Nearest:
    """For every condensed node its ``k`` nearest training nodes, nearest first.

    Attributes:
        nodes: ids in the real graph, ``(n', k)``; of equally near nodes the lower id.
        distances: Euclidean, ``(n', k)``.
        classes: their classes, ``(n', k)``.
        agreement: share of the labelled condensed nodes whose nearest node has their class.
        distinct: how many different training nodes are nearest to some condensed node.
    """

    nodes: np.ndarray
    distances: np.ndarray
    classes: np.ndarray
    agreement: float
    distinct: int


def nearest_rows(
    queries: Tensor,
    rows: Tensor,
    k: int = 1,
    *,
    block_bytes: int = BLOCK_BYTES,
    progress: Progress = silent,
) -> tuple[Tensor, Tensor]:
    """Places and Euclidean distances of the ``k`` nearest ``rows`` of every query, nearest first.

    Rows are visited in blocks of at most ``block_bytes``. Differences are squared one by one in
    float64: a query that is one of the rows is at distance zero exactly. Equal distances: first row.
    """
    require(
        isinstance(k, int) and not isinstance(k, bool) and 1 <= k <= rows.shape[0],
        f"nearest: {k!r} is not accepted; a whole number from 1 to {rows.shape[0]} (the training"
        " nodes) is.",
    )
    queries = queries.double()
    size = max(1, block_bytes // (8 * (queries.shape[0] + rows.shape[1])))
    distances = queries.new_zeros(queries.shape[0], 0)
    places = torch.zeros(queries.shape[0], 0, dtype=torch.int64)
    for first in range(0, rows.shape[0], size):
        block = rows[first : first + size].double()
        new = torch.cdist(queries, block, compute_mode="donot_use_mm_for_euclid_dist")
        here = torch.arange(first, first + block.shape[0]).expand(queries.shape[0], -1)
        # What was found before lies in front, so the first of equal distances stays the first.
        distances, chosen = _smallest(torch.cat([distances, new], 1), k)
        places = torch.cat([places, here], 1).gather(1, chosen)
        progress("nearest training nodes", first + block.shape[0], rows.shape[0])
    return places, distances


def nearest_training_nodes(
    queries: Tensor,
    classes: Tensor,
    rows: Tensor,
    row_classes: Tensor,
    ids: Tensor,
    k: int = 1,
    *,
    progress: Progress = silent,
) -> Nearest:
    """Compare condensed rows with those of training nodes, whose ids in the real graph are ``ids``."""
    places, distances = nearest_rows(queries, rows, k, progress=progress)
    found = row_classes[places]
    known = classes >= 0
    return Nearest(
        nodes=ids[places].numpy(),
        distances=distances.numpy(),
        classes=found.numpy(),
        agreement=float((found[known, 0] == classes[known]).double().mean()),
        distinct=int(places[:, 0].unique().numel()),
    )


def _smallest(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The ``k`` smallest of every row in order, the first of equal ones first (topk promises none)."""
    values = values.clone()
    taken, where = [], []
    for _ in range(min(k, values.shape[1])):
        place = values.argmin(1, keepdim=True)
        taken.append(values.gather(1, place))
        where.append(place)
        values.scatter_(1, place, torch.inf)
    return torch.cat(taken, 1), torch.cat(where, 1)
