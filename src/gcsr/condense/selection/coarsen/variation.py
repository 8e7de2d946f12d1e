"""How much the smooth directions of a graph lose when some of its nodes become one."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


class Variation:
    r"""Costs of contracting sets of nodes, given the directions A to keep.

    .. math:: \|B_S^\top L_S B_S\|_F / (s - 1), \qquad B_S = (I - 11^\top/s) A_S, \qquad
              L_S = \mathrm{diag}(2 d_S - W_{SS} 1) - W_{SS}

    (Loukas 2019). As :math:`\mathrm{diag}(W_{SS}1) - W_{SS}` is the Laplacian of the induced graph,
    the matrix in the norm is a sum over nodes and one over the edges inside S:

    .. math:: \sum_{i \in S} 2 (d_i - w_i) b_i b_i^\top
              + \sum_{ij \in E(S)} W_{ij} (b_i - b_j)(b_i - b_j)^\top

    with :math:`w = W_{SS} 1`, in which nothing cancels and no matrix of s x s is needed.
    """

    def __init__(self, weights: sp.csr_array, directions: np.ndarray) -> None:
        self.directions = directions
        self.degrees = np.asarray(weights.sum(1), dtype=np.float64)
        upward = _towards_hubs(weights)
        self._starts = upward.indptr.astype(np.int64)
        self._neighbours, self._values = upward.indices, upward.data
        # Where a node lies within the set at hand; everywhere else -1.
        self._place = np.full(weights.shape[0], -1, dtype=np.int64)

    def cost(self, members: np.ndarray) -> float:
        """What contracting these nodes costs."""
        size = members.size
        if size == 2:
            return float(self.of_pairs(members[:1], members[1:])[0])
        rows = self.directions[members]
        rows = rows - rows.sum(0) / size
        first, second, values = self._edges_inside(members)
        inside = np.bincount(first, values, size) + np.bincount(second, values, size)
        ends = 2 * (self.degrees[members] - inside)
        steps = rows[first] - rows[second]
        energy = (rows.T * ends) @ rows + (steps.T * values) @ steps
        return float(np.sqrt(np.vdot(energy, energy))) / (size - 1)

    def of_pairs(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Costs of many pairs: for s = 2 the formula is (d_i + d_j) |a_i - a_j|^2 / 2."""
        steps = self.directions[first] - self.directions[second]
        squares = np.einsum("pk,pk->p", steps, steps)
        costs: np.ndarray = (self.degrees[first] + self.degrees[second]) / 2 * squares
        return costs

    def _edges_inside(self, members: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Edges among the members, each once, as places within the set, and their weights."""
        starts = self._starts[members]
        lengths = self._starts[members + 1] - starts
        ends = lengths.cumsum()
        flat = np.arange(ends[-1]) + (starts - ends + lengths).repeat(lengths)
        own = np.arange(members.size).repeat(lengths)
        self._place[members] = np.arange(members.size)
        other = self._place[self._neighbours[flat]]
        self._place[members] = -1
        inside = (other >= 0).nonzero()[0]
        return own[inside], other[inside], self._values[flat[inside]]


def _towards_hubs(weights: sp.csr_array) -> sp.csr_array:
    """Every edge once, from the node with fewer neighbours to the one with more.

    Whoever looks for the edges inside a set then never reads the long list of a hub: no row has more
    than the square root of twice the edges.
    """
    neighbours = np.diff(weights.indptr)
    rank = np.empty(neighbours.size, dtype=np.int64)
    rank[np.argsort(neighbours, kind="stable")] = np.arange(neighbours.size)
    coo = sp.coo_array(weights)
    rows, columns = coo.coords
    kept = rank[rows] < rank[columns]
    return sp.csr_array((coo.data[kept], (rows[kept], columns[kept])), shape=weights.shape)
