"""How many super-nodes each connected component gets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

# Smaller components count only if they hold a training or validation node.
SMALL = 10


@dataclass(frozen=True, eq=False)
class Share:
    """A component's nodes and how many super-nodes they become."""

    nodes: np.ndarray
    target: int


def shares(
    weights: sp.csr_array, target: int, train: np.ndarray, validation: np.ndarray
) -> list[Share]:
    """``target`` super-nodes over the components, in proportion to their nodes.

    Whole parts first; what is left goes, one each, to components with training nodes, those with the
    largest remainder first, then to the others. A component without a super-node is dropped, and so
    is a small one that holds neither training nor validation nodes, unless every node is needed.
    """
    count, component = connected_components(weights, directed=False)
    sizes = np.bincount(component, minlength=count)
    trains = np.bincount(component[train], minlength=count) > 0
    validates = np.bincount(component[validation], minlength=count) > 0
    counts = (sizes > SMALL) | trains | validates
    if sizes[counts].sum() < target:
        counts[:] = True
    exact = np.where(counts, target * sizes / sizes[counts].sum(), 0.0)
    whole = np.floor(exact).astype(np.int64)
    # The last key is the first to sort by.
    order = np.lexsort((-sizes, whole - exact, ~trains, ~counts))
    while (left := target - int(whole.sum())) > 0:
        whole[order[(whole < sizes)[order] & counts[order]][:left]] += 1
    by_component = np.split(np.argsort(component, kind="stable"), np.cumsum(sizes)[:-1])
    return [Share(by_component[c], int(whole[c])) for c in np.flatnonzero(whole)]
