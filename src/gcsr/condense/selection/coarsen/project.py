"""What super-nodes carry: features and labels of the nodes that they stand for."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.sparse as sp

Projection = Literal["auto", "sum", "mean"]
Labels = Literal["pure", "majority"]
# How far from one the sum of a row that was scaled to one may be.
ROUNDING = 1e-3


def resolved(projection: Projection, features: np.ndarray) -> Projection:
    """``auto`` is ``sum`` where rows are shares of words (non-negative, summing to one or nothing).

    Scaled to one, the rows of super-nodes are then what a network meets on the real graph; any other
    features keep their scale only as means.
    """
    if projection != "auto":
        return projection
    sums = features.sum(1)
    shares = (np.abs(sums - 1) < ROUNDING) | (sums == 0)
    return "sum" if features.min() >= 0 and shares.all() else "mean"


def projected(features: np.ndarray, matrix: sp.csr_array, projection: Projection) -> np.ndarray:
    r"""``sum``: :math:`C X` with rows scaled to one; ``mean``: :math:`(C \circ C) X`.

    Squared, the rows of C sum to one.
    """
    result: np.ndarray
    if resolved(projection, features) == "mean":
        result = (matrix * matrix) @ features
    else:
        summed = matrix @ features
        sizes = np.abs(summed).sum(1, keepdims=True)
        result = summed / np.where(sizes > 0, sizes, 1)
    return result


def super_labels(
    matrix: sp.csr_array, labels: np.ndarray, num_classes: int, rule: Labels
) -> np.ndarray:
    """The class of every super-node, -1 where there is none.

    ``labels`` are those of nodes, -1 but on training nodes. ``pure``: the class that all training
    nodes of a super-node share; ``majority``: the most frequent one, the smaller number where two
    are equally so.
    """
    known = np.flatnonzero(labels >= 0)
    one_hot = sp.csr_array(
        (np.ones(known.size), (known, labels[known])), shape=(labels.size, num_classes)
    )
    members = sp.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), matrix.shape)
    votes = (members @ one_hot).toarray()
    classes = (votes > 0).sum(1)
    decided = classes == 1 if rule == "pure" else classes > 0
    return np.where(decided, votes.argmax(1), -1)
