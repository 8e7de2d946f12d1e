"""Cora, Citeseer and PubMed: the Planetoid files with their public split."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from gcsr.data.npz import require_features
from gcsr.datasets.layout import RawGraph
from gcsr.datasets.pickles import read_array, read_neighbor_lists
from gcsr.utils.errors import InputError, require
from gcsr.utils.safe_io import reason

VALIDATION_NODES = 500


def read_planetoid(folder: Path, name: str) -> RawGraph:
    """Read the files of ``name``.

    Nodes are ``allx`` and then the test nodes, which the files hold in the order of their index.

    Ids between the test nodes that the index skips (15 in Citeseer) have no features and no
    label: rows of zeros and -1.
    """

    def part(suffix: str) -> Path:
        return folder / f"ind.{name}.{suffix}"

    test = _test_index(part("test.index"))
    features, test_features = _sparse(part("allx")), _sparse(part("tx"))
    labels, test_labels = _one_hot(part("ally")), _one_hot(part("ty"))
    train_count = _one_hot(part("y")).shape[0]
    known = features.shape[0]
    consistent = (
        labels.shape[0] == known
        and test_features.shape == (test.size, features.shape[1])
        and test_labels.shape == (test.size, labels.shape[1])
        and _sparse(part("x")).shape == (train_count, features.shape[1])
        and train_count < known
        and int(test.min()) >= known
        and np.unique(test).size == test.size
    )
    require(
        consistent,
        f"{folder}: the files ind.{name}.* must have matching sizes; download them again.",
    )
    # An id far beyond the others would only claim memory: gaps are few in a genuine file.
    nodes = int(test.max()) + 1
    require(
        nodes <= 2 * (known + test.size),
        f"{part('test.index')}: must be close to the {known + test.size} nodes, got {nodes - 1}.",
    )
    read = sum(part(suffix).stat().st_size for suffix in ("allx", "tx"))
    order = np.full(nodes, -1, dtype=np.int64)
    order[:known] = np.arange(known)
    order[test] = known + np.arange(test.size)
    x = _rows(sp.vstack([features, test_features], format="csr"), order)
    require_features(part("allx"), x, read)
    return RawGraph(
        x=x,
        edges=read_neighbor_lists(part("graph")),
        y=np.where(order < 0, -1, _classes(np.concatenate([labels, test_labels]))[order]),
        train=np.arange(train_count),
        val=np.arange(train_count, min(train_count + VALIDATION_NODES, known)),
        test=test,
        num_classes=labels.shape[1],
    )


def _test_index(path: Path) -> np.ndarray:
    try:
        ids = np.array(path.read_bytes().split(), dtype=np.int64)
    except (ValueError, OverflowError, OSError) as error:
        raise InputError(f"{path}: must hold one node id per line ({reason(error)}).") from None
    require(ids.size > 0, f"{path}: holds no node ids.")
    return ids


def _sparse(path: Path) -> sp.csr_array:
    matrix = read_array(path)
    require(matrix.ndim == 2, f"{path}: must be a matrix, got shape {matrix.shape}.")
    return sp.csr_array(matrix, dtype=np.float32)


def _one_hot(path: Path) -> np.ndarray:
    labels = read_array(path)
    require(
        isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.shape[1] > 0,
        f"{path}: must be a matrix with one row of class indicators per node.",
    )
    return np.asarray(labels)


def _classes(one_hot: np.ndarray) -> np.ndarray:
    return np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1)


def _rows(matrix: sp.csr_array, order: np.ndarray) -> sp.csr_array:
    """Row ``order[i]`` as row ``i``; rows of zeros where ``order`` is -1.

    Rows are indexed: a product would take memory for every column that a file claims.
    """
    empty = sp.csr_array((1, matrix.shape[1]), dtype=np.float32)
    rows = sp.vstack([matrix, empty], format="csr")
    return sp.csr_array(rows[np.where(order < 0, matrix.shape[0], order)])
