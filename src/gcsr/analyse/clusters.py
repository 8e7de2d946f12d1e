"""How well their features keep the classes of condensed nodes apart."""

from __future__ import annotations

import numpy as np

# The paper plots three of seven classes and does not say which.
FIRST = 3


def silhouette(x: np.ndarray, classes: np.ndarray) -> float | None:
    """Mean silhouette coefficient (Rousseeuw, 1987) of rows grouped by class, Euclidean.

    Each row scores (b - a) / max(a, b): a is its mean distance to the others of its class, b that to
    the nearest other class. The only row of a class scores 0; rows of class -1 are left out. ``None``
    where there are fewer than two classes.
    """
    known = classes >= 0
    x, classes = x[known].astype(np.float64), classes[known]
    groups = np.unique(classes).size
    if groups < 2:
        return None
    if groups == classes.size:
        return 0.0  # nothing but singletons, which scikit-learn refuses
    from sklearn.metrics import silhouette_score  # noqa: PLC0415 - takes a second to import

    return float(silhouette_score(x, classes))


def silhouette_of_first(x: np.ndarray, classes: np.ndarray, count: int = FIRST) -> float | None:
    """The same over the first ``count`` classes that have a node."""
    first = np.unique(classes[classes >= 0])[:count]
    return silhouette(x, np.where(np.isin(classes, first), classes, -1))
