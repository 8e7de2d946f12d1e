"""What the script of a page draws: the graph, its matrices, the map, in few bytes."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from gcsr.analysis.analysis import Analysis, OrderedMatrices
from gcsr.analysis.nearest import NodeMap
from gcsr.data.condensed import CondensedGraph

# -- Where the nodes of a condensed graph are drawn --------------------------------------------------


# Only this many of a node's strongest edges attract: all of a dense A' would make a ball.
STRONGEST = 6
# Rounds, fewer where every one takes long.
LEAST_ROUNDS, MOST_ROUNDS, PAIRS_IN_ALL = 40, 300, 1.2e8
# Summed attraction of a node; what draws a class together, and everything to the middle.
PULL, CLASS_GRAVITY, GRAVITY = 1.5, 0.12, 0.25


def arranged(weights: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Places ``(n, 2)`` by the forces of Fruchterman and Reingold (1991); no randomness.

    Nodes start class by class around a circle. Everything repels, the strongest edges of every node
    attract by their weight, and nodes are drawn a little toward the middle of their class.
    """
    n = classes.size
    groups = [np.flatnonzero(classes == c) for c in np.unique(classes)]
    points = np.zeros((n, 2), dtype=np.float32)
    for place, members in enumerate(groups):
        angle = 2 * np.pi * place / len(groups)
        seeds = np.arange(members.size)
        # A sunflower: even inside a disc, and never two at one place.
        radius = 0.35 * np.sqrt((seeds + 0.5) / members.size)
        turn = seeds * np.pi * (3 - np.sqrt(5)) + angle
        points[members, 0] = np.cos(angle) + radius * np.cos(turn)
        points[members, 1] = np.sin(angle) + radius * np.sin(turn)
    if n == 1:
        return points
    pull = _attraction(weights)
    ideal = np.float32(np.sqrt(4.0 / n))
    rounds = int(np.clip(PAIRS_IN_ALL / n**2, LEAST_ROUNDS, MOST_ROUNDS))
    for i in range(rounds):
        x, y = points.T
        squared = np.square(x[:, None] - x) + np.square(y[:, None] - y)
        np.maximum(squared, 1e-6, out=squared)
        # Repulsion ideal²/d and attraction w d²/ideal, both along the unit vector between two.
        force = ideal**2 / squared - pull * np.sqrt(squared) / ideal
        move = points * force.sum(1, keepdims=True) - force @ points
        for members in groups:
            move[members] -= CLASS_GRAVITY * (points[members] - points[members].mean(0))
        move -= GRAVITY * points
        length = np.sqrt((move * move).sum(1, keepdims=True))
        warmth = 0.2 * (1 - i / rounds) ** 1.5 + 1e-3
        points = points + move / np.maximum(length, 1e-9) * np.minimum(length, warmth)
    return points


def _attraction(weights: np.ndarray) -> np.ndarray:
    """How strongly two nodes attract each other; 0 without an edge that is among the strongest."""
    w = np.array(weights, dtype=np.float32)
    w = np.maximum(w, w.T)
    np.fill_diagonal(w, 0)
    high = float(w.max())
    if not high > 0:
        return w
    pull = np.where(_among_strongest(w, STRONGEST), np.sqrt(w / high), 0)
    # A node with many neighbors attracts each of them less.
    total = np.sqrt(np.maximum(pull.sum(1), 1e-9))
    return np.asarray(PULL * pull / np.outer(total, total), dtype=np.float32)


def _among_strongest(weights: np.ndarray, count: int) -> np.ndarray:
    """Which edges are among the ``count`` strongest of one of their ends."""
    order = np.argsort(-weights, axis=1, kind="stable")[:, : min(count, weights.shape[0] - 1)]
    mask = np.zeros(weights.shape, dtype=bool)
    np.put_along_axis(mask, order, True, axis=1)
    return np.asarray(mask | mask.T)


# -- arrays as text that a browser reads: little-endian, base64 --------------------------------------


def packed(values: np.ndarray, kind: str) -> str:
    """Bytes of an array; ``kind`` is ``u1``, ``u2``, ``u4``, ``i2`` or ``f4``."""
    return base64.b64encode(np.ascontiguousarray(values, f"<{kind}").tobytes()).decode()


def packed_points(points: np.ndarray) -> str:
    """Points in the square from -1 to 1, in steps of 1/32767; x and y in turn."""
    return packed(np.round(np.clip(points, -1, 1) * 32767), "i2")


def fitted(points: np.ndarray) -> np.ndarray:
    """The same points moved and scaled into the square from -1 to 1, their shape kept."""
    low, high = points.min(0), points.max(0)
    half = float((high - low).max()) / 2 or 1.0
    return np.asarray((points - (low + high) / 2) / half)


def gray(matrix: np.ndarray, low: float, high: float) -> dict[str, Any]:
    """A matrix in 256 steps between ``low`` and ``high``; entries beyond are clipped."""
    span = high - low or 1.0
    steps = np.round(255 * np.clip((matrix - low) / span, 0, 1))
    return {"size": int(matrix.shape[0]), "low": low, "high": high, "data": packed(steps, "u1")}


def shrunk(matrix: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At most ``most`` rows and columns, each the mean of several; and the row where each begins."""
    n = matrix.shape[0]
    starts = np.linspace(0, n, min(n, most), endpoint=False).astype(int)
    if n <= most:
        return matrix, starts
    counts = np.diff(np.append(starts, n))
    sums = np.add.reduceat(np.add.reduceat(matrix, starts, 0), starts, 1)
    return sums / np.outer(counts, counts), starts


# -- the graph, its matrices, the map ----------------------------------------------------------------


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
    # Where there are no edges, nodes with similar features attract.
    x = small.x.detach().cpu().double().numpy()
    pull = weights
    if not total:
        from sklearn.metrics.pairwise import cosine_similarity  # noqa: PLC0415 - takes a second

        pull = np.maximum(cosine_similarity(x), 0)
    nearest = None
    if analysis is not None:
        near = analysis.nearest
        nearest = {
            "count": int(near.nodes.shape[1]),
            "nodes": packed(near.nodes, "u4"),
            "classes": packed(near.classes, "i2"),
            "distances": packed(near.distances, "f4"),
        }
    return {
        "nodes": small.num_nodes,
        "places": packed_points(fitted(arranged(pull, classes))),
        "classes": packed(classes, "i2"),
        "from": packed(rows, "u2"),
        "to": packed(columns, "u2"),
        "weights": packed(values, "f4"),
        "edges": int(rows.size),
        "edges_in_all": total,
        "diagonal": packed(np.diag(weights), "f4"),
        "nearest": nearest,
    }


def strongest_edges(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Ends and weights of the edges that are drawn, strongest first; and how many edges there are."""
    rows, columns = np.nonzero(np.triu(weights, 1))
    values = weights[rows, columns]
    # Equal weights: in the order of their ends.
    order = np.lexsort((columns, rows, -values))
    own = _among_strongest(weights - np.diag(np.diag(weights)), OF_EVERY_NODE)[rows, columns]
    order = order[own[order] | (np.arange(order.size) < MOST_EDGES)]
    return rows[order], columns[order], values[order], int(values.size)


def heat_data(matrices: OrderedMatrices) -> dict[str, Any]:
    """A' and X'X'ᵀ class by class."""
    a, starts = shrunk(_drawable(matrices.adjacency), MOST_ROWS)
    gram, _ = shrunk(_drawable(matrices.gram), MOST_ROWS)
    high, most = _beside_diagonal(a), _beside_diagonal(gram)
    low = float(gram.min())
    # Both signs around zero, or from the least entry up where none is negative.
    scale = (-most, most) if low < 0 else (low, max(most, low))
    common = {"classes": packed(matrices.classes[starts], "i2")}
    return {
        "nodes": int(matrices.order.size),
        "adjacency": {**gray(a, 0.0, high), **common},
        "gram": {**gray(gram, *scale), **common},
        "order": packed(matrices.order[starts], "u2"),
    }


def _drawable(matrix: np.ndarray) -> np.ndarray:
    """Products of huge features are infinite: they become the largest number that a page can hold."""
    most = float(np.finfo(np.float32).max)
    return np.clip(np.nan_to_num(matrix.astype(np.float64)), -most, most)


def _beside_diagonal(matrix: np.ndarray) -> float:
    """The largest entry off the diagonal, which would outshine the rest."""
    others = np.abs(matrix[~np.eye(matrix.shape[0], dtype=bool)])
    high = float(others.max()) if others.size else 0.0
    return high or float(np.abs(matrix).max()) or 1.0


def similarity_data(values: np.ndarray) -> dict[str, Any]:
    """A CCNS matrix with too many classes for a table; absent classes are 0."""
    drawn, starts = shrunk(np.nan_to_num(values), MOST_ROWS)
    return {**gray(drawn, 0.0, 1.0), "classes": packed(starts, "i2")}


def map_data(found: NodeMap) -> dict[str, Any]:
    """Real and condensed nodes in one plane."""
    both = fitted(np.concatenate([found.real, found.condensed]))
    count = found.real.shape[0]
    return {
        "real": packed_points(both[:count]),
        "real_nodes": packed(found.real_nodes, "u4"),
        "real_classes": packed(found.real_classes, "i2"),
        "condensed": packed_points(both[count:]),
        "condensed_classes": packed(found.condensed_classes, "i2"),
    }
