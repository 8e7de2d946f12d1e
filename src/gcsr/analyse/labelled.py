"""A real graph and a condensed one in the same plain form, so that each statistic is written once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from gcsr.condensed import CondensedGraph


@dataclass(frozen=True, eq=False)
class LabelledGraph:
    """Edges without self-loops, and how much of every node belongs to each class.

    Attributes:
        adjacency: CSR, non-negative, its diagonal empty and no zero stored.
        shares: ``(n, C)``; one-hot for a hard label, zeros for none.
    """

    adjacency: sp.csr_array
    shares: np.ndarray

    @classmethod
    def of_classes(
        cls, adjacency: sp.csr_array, labels: np.ndarray, num_classes: int
    ) -> LabelledGraph:
        """From one class per node, -1 where it is not known."""
        shares = np.zeros((labels.size, num_classes))
        known = np.flatnonzero(labels >= 0)
        shares[known, labels[known]] = 1
        return cls(_without_diagonal(adjacency), shares)

    @classmethod
    def of_condensed(cls, small: CondensedGraph) -> LabelledGraph:
        """A' without its diagonal, which says how far a node is itself and nothing of neighbours."""
        adjacency = sp.csr_array(small.adjacency.detach().cpu().double().numpy())
        return cls(_without_diagonal(adjacency), small.targets.detach().cpu().double().numpy())

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return int(self.shares.shape[0])

    @property
    def num_entries(self) -> int:
        """Entries that are not zero; an undirected edge has two."""
        return int(self.adjacency.nnz)

    @cached_property
    def labelled(self) -> np.ndarray:
        """Which nodes have a label."""
        return np.asarray(self.shares.sum(1) > 0)

    @cached_property
    def weighted_histograms(self) -> np.ndarray:
        """``(n, C)``: the weight that a node's edges lay on each class; no label, no count."""
        return np.asarray(self.adjacency.astype(np.float64) @ self.shares)

    @cached_property
    def histograms(self) -> np.ndarray:
        """``(n, C)``: a node's neighbours of each class, every edge counted as one."""
        a = self.adjacency
        ones = sp.csr_array((np.ones(a.nnz), a.indices, a.indptr), shape=a.shape)
        return np.asarray(ones @ self.shares)


def _without_diagonal(adjacency: sp.csr_array) -> sp.csr_array:
    coo = adjacency.tocoo()
    kept = (coo.row != coo.col) & (coo.data != 0)
    if kept.all():
        return adjacency
    return sp.csr_array((coo.data[kept], (coo.row[kept], coo.col[kept])), shape=coo.shape)
