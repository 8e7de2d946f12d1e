"""Features, labels and node ids from the arrays and tensors of users."""

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
        _require_matrix(tuple(dense.shape))
        require(
            not dense.is_complex() and dense.dtype != torch.bool,
            f"x must be real numbers, got {dense.dtype}; x.float() converts it.",
        )
        return dense.to(torch.float32).clone().contiguous()
    try:
        array: np.ndarray = x.toarray() if isinstance(x, SPARSE) else array_of("x", x)
    except MemoryError:
        shape = getattr(x, "shape", "these")
        raise InputError(f"x must fit into memory as a dense matrix, got shape {shape}.") from None
    _require_matrix(array.shape)
    call = "; x.astype('float32') converts it" if array.dtype.kind in "bO" else ""
    require(array.dtype.kind in "iuf", f"x must be real numbers, got {array.dtype}{call}.")
    with np.errstate(over="ignore"):  # numbers beyond float32 become infinite and are refused
        return torch.from_numpy(np.array(array, dtype=np.float32, order="C"))


def _require_matrix(shape: tuple[int, ...]) -> None:
    call = "; x.reshape(-1, 1) makes one column" if len(shape) == 1 else ""
    require(len(shape) == 2, f"x must be a matrix with one row per node, got shape {shape}{call}.")


def labels_of(y: ArrayLike | Tensor) -> Tensor:
    """One integer class per node."""
    array = array_of("y", y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    call = "; y.argmax(1) converts one-hot labels" if array.ndim == 2 else ""
    require(array.ndim == 1, f"y must have one class per node, got shape {array.shape}{call}.")
    call = (
        "y.astype('int64')"
        if array.dtype.kind == "f"
        else "numpy.unique(y, return_inverse=True)[1]"
    )
    require(
        array.dtype.kind in "iu",
        f"y must be integers 0..C-1 (-1: no label), got {array.dtype}; {call} converts it.",
    )
    return torch.from_numpy(array.astype(np.int64))


def node_ids(split: str, ids: ArrayLike | Tensor, num_nodes: int) -> Tensor:
    """Node ids of a split given as ids or as a mask."""
    array = array_of(split, ids)
    accepted = f"{split} must be a list of node ids or a boolean mask"
    require(array.ndim == 1, f"{accepted}, got shape {array.shape}.")
    if array.dtype == np.bool_:
        require(
            array.size == num_nodes,
            f"{split} must have {num_nodes} entries as a mask, got {array.size}.",
        )
        array = np.flatnonzero(array)
    require(not array.size or array.dtype.kind in "iu", f"{accepted}, got {array.dtype}.")
    zeros_and_ones = array.size == num_nodes > 2 and int(array.min()) >= 0 and int(array.max()) <= 1
    require(
        not zeros_and_ones,
        f"{accepted}, got 0 and 1 for every node; {split}.astype(bool) makes a mask of them.",
    )
    return torch.from_numpy(array.astype(np.int64))


def array_of(field: str, values: object) -> np.ndarray:
    """Any array-like or tensor as an array."""
    if isinstance(values, Tensor):
        try:
            return np.asarray(values.detach().cpu().numpy())
        except (TypeError, RuntimeError):  # bfloat16 and sparse layouts
            raise InputError(
                f"{field} must be a dense tensor of a type that numpy has, got {values.dtype} with"
                f" {values.layout}; {field}.to_dense() or {field}.float() converts it."
            ) from None
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        kind = type(values).__name__
        raise InputError(f"{field} must have rows of equal length, got a ragged {kind}.") from None
