"""How classes are joined: the prior of the reconstruction (Eq. 5-6), and neighborhood similarity."""

from __future__ import annotations

import torch
from torch import Tensor


class ClassCounts:
    """How often an edge from one class ends in another, counted in as many parts as edges come."""

    def __init__(self, labels: Tensor, num_classes: int) -> None:
        self._labels, self._classes = labels, num_classes
        # Counts in float64: float32 stops counting at 16.7 million edges of one kind.
        size = num_classes * num_classes
        self._counts = torch.zeros(size, dtype=torch.float64, device=labels.device)

    def add(self, sources: Tensor, targets: Tensor, weights: Tensor) -> None:
        """Some more edges."""
        rows, columns = self._labels[sources], self._labels[targets]
        known = (rows >= 0) & (columns >= 0)
        pairs = rows[known] * self._classes + columns[known]
        self._counts = self._counts.index_add(0, pairs, weights[known].double())

    def correlation(self) -> Tensor:
        """Rows that sum to one; see :func:`class_correlation`."""
        labels = self._labels
        counts = self._counts.view(self._classes, self._classes)
        totals = counts.sum(1, keepdim=True)
        shares = torch.bincount(labels[labels >= 0], minlength=self._classes).double()
        shares = shares / shares.sum()
        return torch.where(totals > 0, counts / totals.clamp_min(1e-300), shares)


def class_correlation(adjacency: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    r"""Eq. 5: how often an edge from class c ends in class c'; rows sum to one.

    .. math::
        \bar A_{cc'} = \frac{\sum_{ij} [y_i=c][y_j=c'] A_{ij}}{\sum_{ij} [y_i=c][y_j\ge 0] A_{ij}}

    computed as :math:`L^\top A L` with a sparse label matrix, in time linear in the edges.
    ``adjacency`` is sparse CSR; nodes with label -1 do not count. A class none of whose edges ends
    in a labeled node gets the shares of the classes among the labeled nodes: what a neighbor
    would be if edges ignored classes.
    """
    counts = ClassCounts(labels.to(adjacency.device), num_classes)
    coo = adjacency.to_sparse_coo()
    counts.add(coo.indices()[0], coo.indices()[1], coo.values())
    return counts.correlation()


def class_prior(correlation: Tensor, labels: Tensor) -> Tensor:
    r"""Eq. 6: :math:`P_{ij} = \bar A_{y'_i y'_j}` for the labels of the condensed nodes."""
    return correlation[labels][:, labels]


def cross_class_similarity(histograms: Tensor, shares: Tensor) -> Tensor:
    r"""CCNS (Ma, Liu, Shah and Tang, "Is homophily a necessity for graph neural networks?", Def. 2).

    .. math::
        s(c, c') = \frac{1}{|V_c||V_{c'}|} \sum_{i \in V_c} \sum_{j \in V_{c'}} \cos(d_i, d_j)

    where :math:`d_i` counts the neighbors of node i by class. The pairs i = j belong to the sum.
    The double sum is the product of two sums, so this is the Gram matrix of the classes' mean unit
    histograms: linear in the nodes.

    Args:
        histograms: ``(n, C)``, non-negative. A node without neighbors has a row of zeros, is similar
            to no node, and still counts as a member of its class.
        shares: ``(n, C)``, how much of a node belongs to each class: one-hot where labels are hard,
            zeros where a node has none.

    Returns:
        ``(C, C)``, symmetric, in [0, 1]; NaN in the rows and columns of classes without a node.
    """
    # Scaled by the largest entry first, so that squares of tiny weights do not vanish.
    largest = histograms.amax(1, keepdim=True)
    scaled = histograms / torch.where(largest > 0, largest, torch.ones_like(largest))
    norms = scaled.norm(dim=1, keepdim=True)
    unit = scaled / torch.where(norms > 0, norms, torch.ones_like(norms))
    members = shares.sum(0)
    means = (shares.T @ unit) / members[:, None]  # 0 / 0 is NaN: a class that is not there
    return (means @ means.T).clamp(0, 1)
