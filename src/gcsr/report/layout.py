"""Where the nodes of a condensed graph are drawn."""

from __future__ import annotations

import numpy as np

# Attraction looks at so many of a node's strongest edges: all of a dense A' would make a ball.
STRONGEST = 6
# Rounds, fewer where every one takes long.
LEAST_ROUNDS, MOST_ROUNDS, PAIRS_IN_ALL = 40, 300, 1.2e8
# Summed attraction of a node; what draws a class together, and everything to the middle.
PULL, CLASS_GRAVITY, GRAVITY = 1.5, 0.12, 0.25


def arranged(weights: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Places ``(n, 2)`` by the forces of Fruchterman and Reingold (1991); no randomness.

    Nodes start class by class around a circle. Everything repels, the strongest edges of every node
    attract by their weight, and nodes are drawn a little towards the middle of their class.
    """
    n = classes.size
    points = _start(classes)
    if n == 1:
        return points
    pull = _strongest(weights, STRONGEST)
    groups = [np.flatnonzero(classes == c) for c in np.unique(classes)]
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


def _start(classes: np.ndarray) -> np.ndarray:
    present = np.unique(classes)
    points = np.zeros((classes.size, 2), dtype=np.float32)
    for place, c in enumerate(present):
        members = np.flatnonzero(classes == c)
        angle = 2 * np.pi * place / present.size
        i = np.arange(members.size)
        # A sunflower: even inside a disc, and never two at one place.
        radius = 0.35 * np.sqrt((i + 0.5) / members.size)
        turn = i * np.pi * (3 - np.sqrt(5)) + angle
        points[members, 0] = np.cos(angle) + radius * np.cos(turn)
        points[members, 1] = np.sin(angle) + radius * np.sin(turn)
    return points


def _strongest(weights: np.ndarray, count: int) -> np.ndarray:
    """Relative weights of edges that are among the strongest of one of their ends; others 0."""
    w = np.array(weights, dtype=np.float32)
    w = np.maximum(w, w.T)
    np.fill_diagonal(w, 0)
    high = float(w.max())
    if not high > 0:
        return w
    kept = min(count, w.shape[0] - 1)
    order = np.argsort(-w, axis=1, kind="stable")[:, :kept]
    mask = np.zeros(w.shape, dtype=bool)
    np.put_along_axis(mask, order, True, axis=1)
    pull = np.where(mask | mask.T, np.sqrt(w / high), 0)
    # A node that is everybody's neighbour pulls each of them less.
    total = np.sqrt(np.maximum(pull.sum(1), 1e-9))
    return np.asarray(PULL * pull / np.outer(total, total), dtype=np.float32)


def similar_rows(x: np.ndarray) -> np.ndarray:
    """Cosines between rows, negative ones as 0: what stands in for edges where there are none."""
    x = x.astype(np.float64)
    unit = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    return np.asarray(np.maximum(unit @ unit.T, 0))
