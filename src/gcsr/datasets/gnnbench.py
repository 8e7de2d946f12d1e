"""Amazon and Coauthor graphs: npz files of the GNN benchmark that PyG also reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from gcsr.data.npz import checked_csr, load_arrays, require_features, shape_of
from gcsr.datasets.layout import RawGraph, per_class_split
from gcsr.utils.errors import require

# The files also hold names of nodes and words, some of them pickled: never touched.
_ADJACENCY = ("adj_data", "adj_indices", "adj_indptr", "adj_shape")
_ATTRIBUTES = ("attr_data", "attr_indices", "attr_indptr", "attr_shape")
_DENSE_ATTRIBUTES = "attr_matrix"


def read_gnnbench(folder: Path, file: str) -> RawGraph:
    """Read ``file`` in a folder."""
    path = folder / file
    arrays = load_arrays(path, only=(*_ADJACENCY, *_ATTRIBUTES, _DENSE_ATTRIBUTES, "labels"))
    dense = _DENSE_ATTRIBUTES in arrays
    needed = (*_ADJACENCY, "labels") if dense else (*_ADJACENCY, *_ATTRIBUTES, "labels")
    missing = [key for key in needed if key not in arrays]
    require(
        not missing,
        f"{path}: must hold the arrays {', '.join(needed)}, but lacks {', '.join(missing)}.",
    )
    adjacency = checked_csr(path, "adj", arrays, shape_of(path, "adj", arrays))
    y = arrays["labels"]
    require(
        y.ndim == 1 and y.dtype.kind in "iu",
        f"{path}: labels must be one integer class per node, got {y.dtype} of shape {y.shape}.",
    )
    train, val, test = per_class_split(y)
    return RawGraph(_binary(_attributes(path, arrays)), adjacency, y, train, val, test)


def _attributes(path: Path, arrays: dict[str, np.ndarray]) -> np.ndarray | sp.csr_array:
    if _DENSE_ATTRIBUTES not in arrays:
        x = checked_csr(path, "attr", arrays, shape_of(path, "attr", arrays))
        require_features(path, x, path.stat().st_size)
        return x
    x = arrays[_DENSE_ATTRIBUTES]
    require(
        x.ndim == 2 and x.dtype.kind in "biuf",
        f"{path}: {_DENSE_ATTRIBUTES} must be a matrix of numbers, got {x.dtype} of shape {x.shape}.",
    )
    return x


def _binary(x: np.ndarray | sp.csr_array) -> np.ndarray | sp.csr_array:
    """Word counts as word presence: as PyG's reader does."""
    binary = x.astype(np.float32)
    values = binary.data if isinstance(binary, sp.csr_array) else binary
    values[values > 0] = 1
    return binary
