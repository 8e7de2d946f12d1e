"""Flickr, Reddit and other graphs in GraphSAINT's four files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gcsr.data.npz import checked_csr, load_array, load_arrays
from gcsr.datasets.layout import RawGraph
from gcsr.utils.errors import InputError, require
from gcsr.utils.safe_io import reason

_ROLES = ("tr", "va", "te")


def read_graphsaint(folder: Path) -> RawGraph:
    """Adjacency, features, the class of each node and the role of each node."""
    x = _features(folder / "feats.npy")
    nodes = x.shape[0]
    train, val, test = _roles(folder / "role.json")
    return RawGraph(
        x=x,
        edges=_adjacency(folder / "adj_full.npz", nodes),
        y=_labels(folder / "class_map.json", nodes),
        train=train,
        val=val,
        test=test,
    )


def _features(path: Path) -> np.ndarray:
    # Reddit's features are a gigabyte of float64: mapped, only the float32 copy takes memory.
    x = load_array(path)
    require(x.ndim == 2, f"{path}: must be a matrix of features, got shape {x.shape}.")
    return x


def _adjacency(path: Path, nodes: int) -> sp.csr_array:
    arrays = load_arrays(path, only=("indptr", "indices", "data"))
    missing = [key for key in ("indptr", "indices") if key not in arrays]
    require(
        not missing,
        f"{path}: must hold the arrays indptr and indices, but lacks {', '.join(missing)}.",
    )
    prefixed = {f"adj_{key}": value for key, value in arrays.items()}
    return checked_csr(path, "adj", prefixed, (nodes, nodes))


def _labels(path: Path, nodes: int) -> np.ndarray:
    classes = _json_object(path)
    try:
        ids = np.array([int(node) for node in classes], dtype=np.int64)
    except (ValueError, OverflowError):
        raise InputError(f"{path}: keys must be node ids.") from None
    require(
        all(_is_whole(label) for label in classes.values()),
        f"{path}: values must be one integer class per node, not several.",
    )
    inside = ids.size == 0 or (int(ids.min()) >= 0 and int(ids.max()) < nodes)
    require(inside, f"{path}: keys must be node ids 0..{nodes - 1}.")
    y = np.full(nodes, -1, dtype=np.int64)
    y[ids] = list(classes.values())
    return y


def _roles(path: Path) -> list[np.ndarray]:
    roles = _json_object(path)
    parts = []
    for role in _ROLES:
        ids = roles.get(role)
        require(
            isinstance(ids, list) and all(_is_whole(node) for node in ids),
            f"{path}: {', '.join(_ROLES)} must be lists of node ids, but {role} is not.",
        )
        parts.append(np.array(ids, dtype=np.int64))
    return parts


def _is_whole(value: object) -> bool:
    """A whole number that an array can hold."""
    return type(value) is int and abs(value) < 2**63


def _json_object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, OSError, RecursionError) as error:
        raise InputError(f"{path}: not readable JSON ({reason(error)}).") from None
    require(isinstance(content, dict), f"{path}: must hold a JSON object.")
    return dict(content)
