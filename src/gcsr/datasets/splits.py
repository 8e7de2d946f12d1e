"""A seeded split for datasets that are published without one."""

from __future__ import annotations

import numpy as np

TRAIN_PER_CLASS = 20
VAL_PER_CLASS = 30
PER_CLASS_SPLIT = f"{TRAIN_PER_CLASS} / {VAL_PER_CLASS} per class, rest test"


def per_class_split(y: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Train, validation and test ids: 20 and 30 random nodes of every class, and the rest.

    Unlabelled nodes (-1) are in none of the three. The same labels and seed give the same split.
    """
    rng = np.random.default_rng(seed)
    train, val, test = [], [], []
    for nodes in _by_class(y):
        members = rng.permutation(nodes)
        train.append(members[:TRAIN_PER_CLASS])
        val.append(members[TRAIN_PER_CLASS : TRAIN_PER_CLASS + VAL_PER_CLASS])
        test.append(members[TRAIN_PER_CLASS + VAL_PER_CLASS :])
    return _joined(train), _joined(val), _joined(test)


def _by_class(y: np.ndarray) -> list[np.ndarray]:
    """Nodes of every class, ascending; one look at the labels however many classes there are."""
    order = np.argsort(y, kind="stable")
    order = order[y[order] >= 0]
    starts = np.flatnonzero(np.diff(y[order])) + 1
    return np.split(order, starts) if order.size else []


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.sort(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int64)
