"""Bytes of graphs in a file: features and edges as compressed sparse rows where that is smaller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from gcsr.data.features import filled

if TYPE_CHECKING:
    import scipy.sparse as sp

    from gcsr.data.stored_matrix import StoredMatrix

# More classes than any node classification has; bounds what a file can make us allocate.
MOST_CLASSES = 1_000_000
POINTER_BYTES, LABEL_BYTES = 4, 8


@dataclass(frozen=True)
class StoredParts:
    """Bytes of a graph in a file."""

    features: int
    adjacency: int
    labels: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.features + self.adjacency + self.labels


def sparse_bytes(rows: int, width: int, entries: int, itemsize: int) -> int:
    """Bytes of a matrix as compressed sparse rows, in numbers of ``itemsize`` bytes."""
    column = 2 if width <= 2**15 else 4
    return entries * (itemsize + column) + (rows + 1) * POINTER_BYTES


def real_bytes(
    x: Tensor,
    adjacency: sp.csr_array | StoredMatrix,
    *,
    entries: int | None = None,
    weighted: bool | None = None,
    itemsize: int = 4,
    label_bytes: int = LABEL_BYTES,
) -> StoredParts:
    """Bytes of real nodes, stored as sparingly as a condensed graph is.

    ``entries`` of ``x`` are not zero; they and ``weighted`` are computed where they are not given.
    """
    nodes, width = x.shape
    if entries is None:
        entries = filled(x)
    if weighted is None:
        weighted = bool((adjacency.data != 1).any())
    return StoredParts(
        features=min(nodes * width * itemsize, sparse_bytes(nodes, width, entries, itemsize)),
        adjacency=sparse_bytes(nodes, nodes, adjacency.nnz, itemsize if weighted else 0),
        labels=nodes * label_bytes,
    )
