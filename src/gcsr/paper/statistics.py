"""The numbers of Table 1."""

from __future__ import annotations

import numpy as np

from gcsr.graph import Graph
from gcsr.views import View

# Decimals of each as published.
DIGITS = {"nodes": 0, "edges": 0, "classes": 0, "features": 0, "sparsity": 2, "homophily": 2}


def graph_statistics(graph: Graph) -> dict[str, float]:
    """Table 1 for one graph.

    ``edges`` are undirected ones; ``sparsity`` is the percentage of entries of A that are not zero;
    ``homophily`` the share of edges between nodes of the same class, among the edges that may be seen
    while condensing and whose two classes are known.
    """
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges / 2,
        "classes": graph.num_classes,
        "features": graph.num_features,
        "sparsity": 100 * graph.num_edges / graph.num_nodes**2,
        "homophily": _edge_homophily(graph),
    }


def _edge_homophily(graph: Graph) -> float:
    view = View(graph).condensing(leak_every_label=True)
    if view.every_label is None:  # asked for above: statistics train nothing
        return float("nan")
    labels = view.every_label.numpy()
    coo = view.visible.adjacency.tocoo()
    ends = labels[coo.row], labels[coo.col]
    known = (ends[0] >= 0) & (ends[1] >= 0)
    if not known.any():
        return float("nan")
    return float(np.mean((ends[0] == ends[1])[known]))
