"""Arrays out of old pickles without running anything the pickle asks for.

A pickle names callables and feeds them arguments. Here every admitted name stands for an inert
record that only remembers what it was given, and everything else is refused; afterwards the
records are turned into arrays, with checks, by code of this module.
"""

from __future__ import annotations

import io
import math
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gcsr.errors import InputError, require
from gcsr.graph.npz import checked_csr


class _Record:
    """Remembers its arguments and state. Every admitted name is a class with ``__setstate__``:

    without one, a pickle could set attributes of the class itself.
    """

    args: tuple[Any, ...]
    state: Any

    def __new__(cls, *args: Any) -> _Record:
        record = super().__new__(cls)
        record.args, record.state = args, None
        return record

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Array(_Record): ...


class _Dtype(_Record): ...


class _Matrix(_Record): ...


class _Name(_Record):
    """A name that a genuine file only passes on: the array type, the default of a dictionary."""


class _Mapping(dict[Any, Any]):
    """A dictionary whatever the default factory was."""

    def __init__(self, *_: Any) -> None:
        super().__init__()

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("a dictionary has no state")


_ADMITTED: dict[tuple[str, str], type] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _Name,
    ("scipy.sparse.csr", "csr_matrix"): _Matrix,
    ("scipy.sparse._csr", "csr_matrix"): _Matrix,
    ("collections", "defaultdict"): _Mapping,
    ("__builtin__", "list"): _Name,
    ("builtins", "list"): _Name,
}


class _RestrictedUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type:
        # An exact match: dotted names such as "list.__class__" lead nowhere.
        admitted = _ADMITTED.get((module, name))
        if admitted is None:
            raise pickle.UnpicklingError(
                f"it names {module}.{name}; only numpy arrays, scipy CSR matrices and dictionaries"
                " of lists are read"
            )
        return admitted


def read_array(path: Path) -> np.ndarray | sp.csr_array:
    """The numpy array or scipy CSR matrix that the pickle ``path`` holds."""
    content = _records(path)
    try:
        return _matrix(path, content) if isinstance(content, _Matrix) else _array(content)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise InputError(f"{path}: does not hold a numpy array or CSR matrix ({error}).") from None


def read_neighbour_lists(path: Path) -> np.ndarray:
    """The ``2 x E`` edges of a pickled dictionary from a node to the list of its neighbours."""
    content = _records(path)
    require(
        isinstance(content, dict) and all(isinstance(ids, list) for ids in content.values()),
        f"{path}: must hold a dictionary of lists of node ids.",
    )
    try:
        sources = np.repeat(np.array(list(content)), [len(ids) for ids in content.values()])
        targets = np.array([target for ids in content.values() for target in ids])
    except (TypeError, ValueError):
        raise InputError(f"{path}: node ids must be integers.") from None
    require(
        targets.size == 0
        or (sources.dtype.kind == targets.dtype.kind == "i" and targets.ndim == 1),
        f"{path}: node ids must be integers.",
    )
    return np.stack([sources.astype(np.int64), targets.astype(np.int64)])


def _records(path: Path) -> Any:
    try:
        return _RestrictedUnpickler(io.BytesIO(path.read_bytes()), encoding="latin1").load()
    # A hostile or cut file may fail in any way; all of them mean the same to the user.
    except Exception as error:
        raise InputError(f"{path}: refused as a pickle ({error}).") from None


def _array(record: Any) -> np.ndarray:
    if not isinstance(record, _Array):
        raise TypeError("another object")
    _, shape, dtype, fortran, data = record.state
    raw = data.encode("latin1") if isinstance(data, str) else data
    if not isinstance(raw, bytes):
        raise TypeError("values that are not bytes")
    kind = _dtype(dtype)
    if any(type(size) is not int or size < 0 for size in shape):
        raise ValueError("a shape that is none")
    if math.prod(shape) * kind.itemsize != len(raw):
        raise ValueError("a shape that does not match its values")
    return np.frombuffer(raw, dtype=kind).reshape(shape, order="F" if fortran else "C")


def _dtype(record: Any) -> np.dtype[Any]:
    if not isinstance(record, _Dtype) or not re.fullmatch(r"b1|[iu][1248]|f[248]", record.args[0]):
        raise TypeError("values that are not numbers")
    order = record.state[1]
    if order not in ("<", ">", "|"):
        raise ValueError("an unknown byte order")
    dtype: np.dtype[Any] = np.dtype(order + record.args[0])
    return dtype


def _matrix(path: Path, record: _Matrix) -> sp.csr_array:
    state = record.state
    shape = tuple(state["_shape"])
    if len(shape) != 2 or any(type(size) is not int or size < 0 for size in shape):
        raise ValueError("a shape that is none")
    arrays = {f"matrix_{part}": _array(state[part]) for part in ("indptr", "indices", "data")}
    return checked_csr(path, "matrix", arrays, (shape[0], shape[1]))
