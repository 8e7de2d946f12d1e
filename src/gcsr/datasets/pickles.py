"""Arrays out of old pickles without running code of the pickle.

A pickle names callables and their arguments. Here every admitted name is a record that only stores
its arguments, and every other name is refused; this module then checks the records and converts them
to arrays. The instructions are checked before: a memo entry may claim gigabytes, and nested tuples
may overflow the stack of the unpickler.
"""

from __future__ import annotations

import io
import itertools
import math
import pickle
import pickletools
import re
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gcsr.data.npz import checked_csr
from gcsr.utils.errors import InputError, require
from gcsr.utils.safe_io import parsing

# Instructions of genuine files of any protocol: no sets, no out-of-band buffers.
_NAMES = (
    "PROTO FRAME STOP MARK POP POP_MARK NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 "
    "LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE "
    "BINBYTES SHORT_BINBYTES EMPTY_LIST LIST APPEND APPENDS EMPTY_DICT DICT SETITEM SETITEMS "
    "EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET LONG_BINGET "
    "GLOBAL STACK_GLOBAL REDUCE NEWOBJ BUILD "
)
_INSTRUCTIONS = frozenset(_NAMES.split())
_REMEMBERING = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))
# A matrix has eighteen.
_MOST_TUPLES = 100
_MOST_DIMENSIONS = 8


class _Record:
    """Stores its arguments and state.

    Without ``__setstate__`` a pickle could set attributes of the class itself.
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
    """A name without arguments: the array type, the default of a dictionary."""


class _Mapping(dict[Any, Any]):
    """A dictionary without its default factory."""

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
        # An exact match: dotted names such as "list.__class__" are refused.
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
    with parsing(f"{path}: does not hold a numpy array or CSR matrix"):
        return _matrix(path, content) if isinstance(content, _Matrix) else _array(content)


def read_neighbor_lists(path: Path) -> np.ndarray:
    """The ``2 x E`` edges of a pickled dictionary from a node to the list of its neighbors."""
    content = _records(path)
    require(
        isinstance(content, dict) and all(isinstance(ids, list) for ids in content.values()),
        f"{path}: must hold a dictionary of lists of node ids.",
    )
    counts = [len(ids) for ids in content.values()]
    # Every id takes a byte at least, unless a list is the list of many nodes.
    require(
        sum(counts) <= path.stat().st_size,
        f"{path}: repeats its lists of node ids, which no genuine file does.",
    )
    ids = itertools.chain(content, *content.values())
    require(all(type(node) is int for node in ids), f"{path}: node ids must be integers.")
    try:
        sources = np.repeat(np.array(list(content), np.int64), counts)
        targets = np.array([node for ids in content.values() for node in ids], np.int64)
    except OverflowError:
        raise InputError(f"{path}: node ids must be integers of 64 bits.") from None
    return np.stack([sources, targets])


def _records(path: Path) -> Any:
    with parsing(f"{path}: refused as a pickle"):
        content = path.read_bytes()
        _check_instructions(content)
        return _RestrictedUnpickler(io.BytesIO(content), encoding="latin1").load()


def _check_instructions(content: bytes) -> None:
    """Refuse instructions that no genuine file has, or too many of them; nothing is run."""
    tuples = 0
    argument: Any
    for count, (instruction, argument, _) in enumerate(pickletools.genops(content)):
        name = instruction.name
        if name not in _INSTRUCTIONS:
            raise pickle.UnpicklingError(f"the instruction {name} is not needed for arrays")
        if name in _REMEMBERING and not 0 <= argument <= count:
            raise pickle.UnpicklingError("it numbers what it remembers out of order")
        tuples += name.endswith(("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"))
        if tuples > _MOST_TUPLES:
            raise pickle.UnpicklingError("more tuples than an array has")


def _array(record: Any) -> np.ndarray:
    if not isinstance(record, _Array):
        raise TypeError("another object")
    _, shape, dtype, fortran, data = record.state
    raw = data.encode("latin1") if isinstance(data, str) else data
    if not isinstance(raw, bytes):
        raise TypeError("values that are not bytes")
    kind = _dtype(dtype)
    if len(shape) > _MOST_DIMENSIONS or any(_is_no_size(size) for size in shape):
        raise ValueError("a shape that is none")
    if math.prod(shape) * kind.itemsize != len(raw):
        raise ValueError("a shape that does not match its values")
    return np.frombuffer(raw, dtype=kind).reshape(shape, order="F" if fortran else "C")


def _is_no_size(size: object) -> bool:
    return type(size) is not int or not 0 <= size < 2**63


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
    if len(shape) != 2 or any(_is_no_size(size) for size in shape):
        raise ValueError("a shape that is none")
    arrays = {f"matrix_{part}": _array(state[part]) for part in ("indptr", "indices", "data")}
    return checked_csr(path, "matrix", arrays, (shape[0], shape[1]))
