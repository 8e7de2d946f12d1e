"""Features, labels and node ids from whatever arrays a user has."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from gcsr.utils.errors import InputError, require

SPARSE = (sp.sparray, sp.spmatrix)
Features: TypeAlias = "ArrayLike | Tensor | sp.sparray | sp.spmatrix"


def features_of(x: Features) -> Tensor:
    """Dense float32 features, a copy."""
    if isinstance(x, Tensor):
        dense = x.detach().cpu()
        dense = dense.to_dense() if dense.layout != torch.strided else dense
        require(
            not dense.is_complex() and dense.dtype != torch.bool,
            f"x: features must be numbers, not {dense.dtype}.",
        )
        require(dense.ndim == 2, f"x: features must be a matrix, not shape {tuple(dense.shape)}.")
        return dense.to(torch.float32).clone().contiguous()
    try:
        array: np.ndarray = x.toarray() if isinstance(x, SPARSE) else array_of("x", x)
    except MemoryError:
        shape = getattr(x, "shape", "these")
        raise InputError(f"x: {shape} features do not fit into memory.") from None
    require(array.ndim == 2, f"x: features must be a matrix, not shape {array.shape}.")
    require(array.dtype.kind in "iuf", f"x: features must be numbers, not {array.dtype}.")
    with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite, and is refused
        return torch.from_numpy(np.array(array, dtype=np.float32, order="C"))


def labels_of(y: ArrayLike | Tensor) -> Tensor:
    """One integer class per node."""
    array = array_of("y", y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    require(array.ndim == 1, f"y: expected one class per node, not shape {array.shape}.")
    require(
        array.dtype.kind in "iu",
        f"y: labels must be integers 0..C-1 (or -1), not {array.dtype}.",
    )
    return torch.from_numpy(array.astype(np.int64))


def node_ids(split: str, ids: ArrayLike | Tensor, num_nodes: int) -> Tensor:
    """Node ids of a split given as ids or as a mask."""
    array = array_of(split, ids)
    require(array.ndim == 1, f"split: {split} must be a list of node ids or a mask.")
    if array.dtype == np.bool_:
        require(
            array.size == num_nodes,
            f"split: the mask {split} has {array.size} entries for {num_nodes} nodes.",
        )
        array = np.flatnonzero(array)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"split: {split} must hold node ids, not {array.dtype}.")
    return torch.from_numpy(array.astype(np.int64))


def array_of(field: str, values: object) -> np.ndarray:
    """Any array-like or tensor as an array; ragged rows are one sentence."""
    if isinstance(values, Tensor):
        try:
            return np.asarray(values.detach().cpu().numpy())
        except (TypeError, RuntimeError):  # numpy has no such numbers, or they lie in no rows
            kind = f"{values.dtype} in the layout {values.layout}"
            raise InputError(f"{field}: a tensor of {kind} is not accepted.") from None
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        raise InputError(f"{field}: the rows must be numbers and of equal length.") from None
