"""Handwritten digits as a graph: bundled with scikit-learn, so it needs no download."""

from __future__ import annotations

import numpy as np

from gcsr.datasets.layout import RawGraph, per_class_split

NEIGHBORS = 10
_BLOCK_ROWS = 256


def read_digits() -> RawGraph:
    """1,797 images of 8 x 8 pixels, each joined to the ten images nearest to it."""
    from sklearn.datasets import load_digits  # noqa: PLC0415 - a second to import

    images, labels = load_digits(return_X_y=True)
    # Whole pixel values make distances exact integers, so every machine finds the same neighbors.
    pixels = np.asarray(images).astype(np.int64)
    nearest = _nearest(pixels, NEIGHBORS)
    sources = np.repeat(np.arange(len(pixels)), NEIGHBORS)
    targets = nearest.reshape(-1)
    edges = np.stack([np.append(sources, targets), np.append(targets, sources)])
    y = np.asarray(labels).astype(np.int64)
    train, val, test = per_class_split(y)
    return RawGraph(pixels.astype(np.float32) / 16, edges, y, train, val, test)


def _nearest(points: np.ndarray, count: int) -> np.ndarray:
    """Ids of the nearest other points (euclidean); ties go to the lower id."""
    norms = (points * points).sum(1)
    blocks = []
    # A block of rows at a time: memory stays linear in the number of points.
    for start in range(0, len(points), _BLOCK_ROWS):
        rows = np.arange(start, min(start + _BLOCK_ROWS, len(points)))
        distances = norms[rows, None] + norms[None, :] - 2 * points[rows] @ points.T
        distances[np.arange(len(rows)), rows] = np.iinfo(np.int64).max
        blocks.append(np.argsort(distances, axis=1, kind="stable")[:, :count])
    return np.concatenate(blocks)
