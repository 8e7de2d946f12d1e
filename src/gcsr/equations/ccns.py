"""Cross-class neighborhood similarity: do two classes have neighbors of the same kinds?"""

from __future__ import annotations

import torch
from torch import Tensor


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
