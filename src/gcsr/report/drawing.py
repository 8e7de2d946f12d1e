"""What the page's script draws, as small as it goes: the graph, its matrices, the map."""

from __future__ import annotations

from typing import Any

import numpy as np

from gcsr.analyse import Analysis
from gcsr.analyse.embedding import NodeMap
from gcsr.analyse.matrices import OrderedMatrices
from gcsr.analyse.neighbours import Nearest
from gcsr.condensed import CondensedGraph
from gcsr.report.layout import arranged, similar_rows
from gcsr.report.pack import fitted, grey, packed, places, shrunk

# The strongest edges are drawn, and of every node these; the page says what was left out.
MOST_EDGES, OF_EVERY_NODE = 20_000, 4
# Rows and columns of a heat map; more would not be seen.
MOST_ROWS = 400


def graph_data(small: CondensedGraph, analysis: Analysis | None) -> dict[str, Any]:
    """Nodes, edges with weights, and nearest real nodes."""
    weights = small.adjacency.detach().cpu().double().numpy()
    # A' is symmetric for every method here; a file by another program need not be.
    weights = np.maximum(weights, weights.T)
    classes = small.classes.detach().cpu().numpy()
    rows, columns, values, total = strongest_edges(weights)
    pull = weights if total else similar_rows(small.x.detach().cpu().numpy())
    nearest = None if analysis is None else analysis.nearest
    return {
        "nodes": small.num_nodes,
        "places": places(fitted(arranged(pull, classes))),
        "classes": packed(classes, "i2"),
        "from": packed(rows, "u2"),
        "to": packed(columns, "u2"),
        "weights": packed(values, "f4"),
        "edges": int(rows.size),
        "edges_in_all": total,
        "diagonal": packed(np.diag(weights), "f4"),
        "nearest": None if nearest is None else _nearest(nearest),
    }


def strongest_edges(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Ends and weights of the edges that are drawn, strongest first; and how many edges there are."""
    rows, columns = np.nonzero(np.triu(weights, 1))
    values = weights[rows, columns]
    total = int(values.size)
    # Equal weights: in the order of their ends.
    order = np.lexsort((columns, rows, -values))
    kept = np.zeros(total, dtype=bool)
    kept[order[:MOST_EDGES]] = True
    if total > MOST_EDGES:
        place = np.full(weights.shape, -1)
        place[rows, columns] = np.arange(total)
        place = np.maximum(place, place.T)
        bare = weights - np.diag(np.diag(weights))
        own = np.argsort(-bare, axis=1, kind="stable")[:, :OF_EVERY_NODE]
        found = np.take_along_axis(place, own, 1).ravel()
        kept[found[found >= 0]] = True
    order = order[kept[order]]
    return rows[order], columns[order], values[order], total


def _nearest(nearest: Nearest) -> dict[str, Any]:
    return {
        "count": int(nearest.nodes.shape[1]),
        "nodes": packed(nearest.nodes, "u4"),
        "classes": packed(nearest.classes, "i2"),
        "distances": packed(nearest.distances, "f4"),
    }


def heat_data(matrices: OrderedMatrices) -> dict[str, Any]:
    """A' and X'X'ᵀ class by class."""
    a, starts = shrunk(_drawable(matrices.adjacency), MOST_ROWS)
    gram, _ = shrunk(_drawable(matrices.gram), MOST_ROWS)
    high, most = _beside_diagonal(a), _beside_diagonal(gram)
    common = {"classes": packed(matrices.classes[starts], "i2")}
    return {
        "nodes": int(matrices.order.size),
        "adjacency": {**grey(a, 0.0, high), **common},
        "gram": {**grey(gram, *_signed_scale(gram, most)), **common},
        "order": packed(matrices.order[starts], "u2"),
    }


def _drawable(matrix: np.ndarray) -> np.ndarray:
    """Products of huge features are infinite: they become the largest number that a page can hold."""
    most = float(np.finfo(np.float32).max)
    return np.clip(np.nan_to_num(matrix.astype(np.float64)), -most, most)


def _signed_scale(matrix: np.ndarray, most: float) -> tuple[float, float]:
    """Both signs around zero, or from the least entry up where none is negative."""
    low = float(matrix.min())
    return (-most, most) if low < 0 else (low, max(most, low))


def _beside_diagonal(matrix: np.ndarray) -> float:
    """The largest entry off the diagonal, which would outshine the rest."""
    others = np.abs(matrix[~np.eye(matrix.shape[0], dtype=bool)])
    high = float(others.max()) if others.size else 0.0
    return high or float(np.abs(matrix).max()) or 1.0


def similarity_data(values: np.ndarray) -> dict[str, Any]:
    """A CCNS matrix with too many classes for a table; absent classes are 0."""
    drawn, starts = shrunk(np.nan_to_num(values), MOST_ROWS)
    return {**grey(drawn, 0.0, 1.0), "classes": packed(starts, "i2")}


def map_data(found: NodeMap) -> dict[str, Any]:
    """Real and condensed nodes in one plane."""
    both = fitted(np.concatenate([found.real, found.condensed]))
    count = found.real.shape[0]
    return {
        "real": places(both[:count]),
        "real_nodes": packed(found.real_nodes, "u4"),
        "real_classes": packed(found.real_classes, "i2"),
        "condensed": places(both[count:]),
        "condensed_classes": packed(found.condensed_classes, "i2"),
    }
