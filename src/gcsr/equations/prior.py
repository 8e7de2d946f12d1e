"""The probabilistic adjacency matrix that the reconstruction is regularised with (Eq. 5-6)."""

from __future__ import annotations

import torch
from torch import Tensor


def class_correlation(adjacency: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    r"""Eq. 5: how often an edge from class c ends in class c'; rows sum to one.

    .. math::
        \bar A_{cc'} = \frac{\sum_{ij} [y_i=c][y_j=c'] A_{ij}}{\sum_{ij} [y_i=c][y_j\ge 0] A_{ij}}

    computed as :math:`L^\top A L` with a sparse label matrix, in time linear in the edges.
    ``adjacency`` is sparse CSR; nodes with label -1 do not count. A class none of whose edges ends
    in a labelled node gets the shares of the classes among the labelled nodes: what a neighbour
    would be if edges ignored classes.
    """
    labels = labels.to(adjacency.device)
    coo = adjacency.to_sparse_coo()
    rows, columns = labels[coo.indices()[0]], labels[coo.indices()[1]]
    known = (rows >= 0) & (columns >= 0)
    pairs = rows[known] * num_classes + columns[known]
    # Counts in float64: float32 stops counting at 16.7 million edges of one kind.
    counts = torch.zeros(num_classes * num_classes, dtype=torch.float64, device=adjacency.device)
    counts = counts.index_add(0, pairs, coo.values()[known].double())
    counts = counts.view(num_classes, num_classes)
    totals = counts.sum(1, keepdim=True)
    shares = torch.bincount(labels[labels >= 0], minlength=num_classes).double()
    shares = shares / shares.sum()
    return torch.where(totals > 0, counts / totals.clamp_min(1e-300), shares)


def class_prior(correlation: Tensor, labels: Tensor) -> Tensor:
    r"""Eq. 6: :math:`P_{ij} = \bar A_{y'_i y'_j}` for the labels of the condensed nodes."""
    return correlation[labels][:, labels]
