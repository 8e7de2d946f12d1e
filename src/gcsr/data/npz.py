"""Graph files: one ``.npz`` of plain arrays, never a pickle.

======================  ===========================================================================
``adj_indptr``          row pointers of the adjacency in CSR form
``adj_indices``         its column indices
``adj_data``            edge weights (optional; absent means unweighted)
``y``                   one integer class per node, -1 where unknown
``x``                   dense features, or in CSR form:
``x_indptr, x_indices`` row pointers and columns of sparse features
``x_data``              their values (optional; absent means 1)
``x_shape``             rows and columns of the sparse features
``train, val, test``    node ids
``num_classes``         number of classes (optional; by default the largest label plus one)
``inductive``           whether validation and test nodes are hidden while condensing (optional)
======================  ===========================================================================
"""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from gcsr.data.graph import MOST_CLASSES, FeatureScaling, Graph
from gcsr.utils.errors import InputError, require
from gcsr.utils.files import write_atomically
from gcsr.utils.safe_io import (
    UNREADABLE,
    allowed_bytes,
    is_file,
    never_falls,
    reason,
    require_unfoldable,
)

# -- Plain arrays out of ``.npy`` and ``.npz`` files from anywhere -----------------------------------


_SUFFIX = ".npy"
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_ENCRYPTED = 1


class _PickledError(ValueError):
    """An array of objects, which only a pickle can hold."""


def load_arrays(path: Path, only: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of an npz file, read without pickles; a broken or unsafe file is one sentence.

    Arrays that are not in ``only`` are never opened.
    """
    require(is_file(path), f"{path}: no such file.")
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            members = _members(archive, only)
            needed = sum(info.file_size for info in members.values())
            require_unfoldable("its arrays", needed, path.stat().st_size)
            return {name: _member(archive, name, info) for name, info in members.items()}
    except UNREADABLE as error:
        raise _refused(path, "npz file", error) from None


def load_array(path: Path) -> np.ndarray:
    """The array of an npy file, mapped into memory rather than read."""
    require(is_file(path), f"{path}: no such file.")
    try:
        with path.open("rb") as stream:
            shape, fortran, dtype = _header(stream, path.stat().st_size)
            start = stream.tell()
            if not math.prod(shape):
                return np.empty(shape, dtype)  # nothing cannot be mapped
        return np.asarray(np.memmap(path, dtype, "r", start, shape, order="F" if fortran else "C"))
    except UNREADABLE as error:
        raise _refused(path, "array", error) from None


def _refused(path: Path, kind: str, error: Exception) -> InputError:
    if isinstance(error, _PickledError):
        return InputError(
            f"{path}: holds a pickled object, which could run code; only plain arrays are read."
        )
    if isinstance(error, InputError):
        return InputError(f"{path}: {error}")
    return InputError(f"{path}: not a readable {kind} ({reason(error)}).")


def _members(archive: zipfile.ZipFile, only: Collection[str] | None) -> dict[str, zipfile.ZipInfo]:
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(_SUFFIX)
        if only is not None and name not in only:
            continue
        shown = reason(ValueError(name))
        require(name not in found, f"{shown} is there twice.")
        require(info.filename.endswith(_SUFFIX), f"{shown} is not an array.")
        require(not info.flag_bits & _ENCRYPTED, f"{shown} is encrypted.")
        require(
            info.compress_type in _METHODS,
            f"{shown} is compressed in another way than deflate, which is what npz files use.",
        )
        found[name] = info
    return found


def _member(archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(info) as stream:
        try:
            shape, fortran, dtype = _header(stream, info.file_size)
        except _PickledError:
            raise
        except UNREADABLE as error:
            raise ValueError(f"{name}: {reason(error)}") from None
        flat = np.empty(math.prod(shape), dtype)
        _fill(stream, flat.view(np.uint8))
        if stream.read(1):
            raise ValueError(f"{name}: more bytes than its header says")
    return flat.reshape(shape, order="F" if fortran else "C")


def _header(stream: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type, once they are known to describe exactly the bytes that follow."""
    magic = np.lib.format.read_magic(stream)
    if magic not in _HEADERS:
        raise ValueError(f"format {magic[0]}.{magic[1]}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the text in the header, which is nobody's program
        shape, fortran, dtype = _HEADERS[magic](stream)
    if dtype.hasobject:
        raise _PickledError("objects")
    if dtype.names is not None or dtype.subdtype is not None or not dtype.itemsize:
        raise ValueError(f"values of type {reason(ValueError(str(dtype)))}")
    if any(type(length) is not int or length < 0 for length in shape):
        raise ValueError("a shape that is none")
    if math.prod(shape) * dtype.itemsize != size - stream.tell():
        raise ValueError("a shape that does not match its values")
    return shape, fortran, dtype


def _fill(stream: IO[bytes], place: np.ndarray) -> None:
    done = 0
    while done < len(place):
        part = stream.read(min(len(place) - done, 1 << 20))
        if not part:
            raise EOFError("cut off")
        place[done : done + len(part)] = np.frombuffer(part, np.uint8)
        done += len(part)


def read_npz(
    path: str | Path, *, undirected: bool, inductive: bool | None, features: FeatureScaling
) -> Graph:
    """See :meth:`gcsr.Graph.from_npz`."""
    path = Path(path)
    arrays = load_arrays(path)
    missing = [
        key
        for key in ("adj_indptr", "adj_indices", "y", "train", "val", "test")
        if key not in arrays
    ]
    require(not missing, f"{path}: lacks the arrays {', '.join(missing)}.")
    y = arrays["y"]
    require(y.ndim == 1, f"{path}: y must hold one class per node, not shape {y.shape}.")
    adjacency = checked_csr(path, "adj", arrays, (y.shape[0], y.shape[0]))
    if "x" in arrays:
        x: np.ndarray | sp.csr_array = arrays["x"]
    else:
        require(
            {"x_indptr", "x_indices", "x_shape"} <= arrays.keys(),
            f"{path}: holds no features (neither x nor x_indptr, x_indices, x_shape).",
        )
        rows, columns = shape_of(path, "x", arrays)
        require(
            rows == y.shape[0] and columns > 0,
            f"{path}: x_shape [{rows}, {columns}] does not match {y.shape[0]} labels.",
        )
        x = checked_csr(path, "x", arrays, (rows, columns))
        require_dense_features(path, x.shape, path.stat().st_size)
    try:
        return Graph.from_arrays(
            x,
            adjacency,
            y,
            weighted="adj_data" in arrays,
            train=arrays["train"],
            val=arrays["val"],
            test=arrays["test"],
            undirected=undirected,
            inductive=_flag(path, arrays, inductive),
            num_classes=_class_count(path, arrays),
            name=path.stem,
            features=features,
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def shape_of(path: Path, prefix: str, arrays: dict[str, np.ndarray]) -> tuple[int, int]:
    """The two integers of ``{prefix}_shape``."""
    shape = arrays[f"{prefix}_shape"]
    require(
        shape.shape == (2,) and shape.dtype.kind in "iu",
        f"{path}: {prefix}_shape must be two integers, not {shape.dtype} of shape {shape.shape}.",
    )
    return int(shape[0]), int(shape[1])


def require_dense_features(path: Path, shape: tuple[int, ...], file_bytes: int) -> None:
    """Sparse features become dense ones: refuse those that a few bytes would unfold to."""
    needed = math.prod(shape) * np.dtype(np.float32).itemsize
    require_unfoldable(f"{path}: {shape[0]} x {shape[1]} dense features", needed, file_bytes)


def checked_csr(
    path: Path, prefix: str, arrays: dict[str, np.ndarray], shape: tuple[int, int]
) -> sp.csr_array:
    """The CSR matrix of the arrays ``{prefix}_indptr``, ``_indices`` and ``_data``, checked."""
    indptr = arrays[f"{prefix}_indptr"]
    indices = arrays[f"{prefix}_indices"]
    integral = indptr.dtype.kind in "iu" and indices.dtype.kind in "iu"
    require(
        integral and indptr.ndim == indices.ndim == 1,
        f"{path}: {prefix}_indptr and {prefix}_indices must be lists of integers.",
    )
    data = arrays.get(f"{prefix}_data", np.ones(indices.shape[0], dtype=np.float32))
    require(
        data.dtype.kind in "biuf",
        f"{path}: {prefix}_data must be numbers, not {data.dtype}.",
    )
    indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
    consistent = (
        shape[0] >= 0
        and 0 <= shape[1] < 2**63
        and indptr.shape[0] == shape[0] + 1
        and data.shape == indices.shape
        and int(indptr[0]) == 0
        and int(indptr[-1]) == indices.shape[0]
        and never_falls(indptr)
        and (indices.size == 0 or (int(indices.min()) >= 0 and int(indices.max()) < shape[1]))
    )
    require(
        consistent,
        f"{path}: {prefix}_indptr, {prefix}_indices and {prefix}_data do not describe a"
        f" {shape[0]} x {shape[1]} matrix.",
    )
    return sp.csr_array((_of_this_machine(data), indices, indptr), shape=shape)


def _of_this_machine(data: np.ndarray) -> np.ndarray:
    """The same numbers in a type that scipy computes with: no half precision, no other byte order."""
    if data.dtype.kind != "f":
        return data.astype(data.dtype.newbyteorder("="), copy=False)
    with np.errstate(over="ignore"):  # what is beyond float64 becomes infinite, and is refused
        return data.astype(np.float32 if data.dtype.itemsize <= 4 else np.float64, copy=False)


def _flag(path: Path, arrays: dict[str, np.ndarray], given: bool | None) -> bool:
    stored = arrays.get("inductive", np.array(False))
    require(
        stored.shape == () and stored.dtype == np.bool_,
        f"{path}: inductive must be a single truth value.",
    )
    return bool(stored) if given is None else given


def _class_count(path: Path, arrays: dict[str, np.ndarray]) -> int:
    stored = arrays.get("num_classes", np.array(0))
    fine = stored.shape == () and stored.dtype.kind in "iu" and 0 <= int(stored) <= MOST_CLASSES
    require(fine, f"{path}: num_classes must be a whole number from 0 to {MOST_CLASSES}.")
    return int(stored)


def write_npz(graph: Graph, path: str | Path) -> Path:
    """See :meth:`gcsr.Graph.to_npz`; the file appears whole or not at all."""
    path = Path(path)
    a = graph.adjacency
    arrays = {
        "adj_indptr": a.indptr,
        "adj_indices": a.indices,
        "y": graph.y.numpy(),
        "train": graph.train.numpy(),
        "val": graph.val.numpy(),
        "test": graph.test.numpy(),
        "num_classes": np.array(graph.num_classes),
        "inductive": np.array(graph.inductive),
    }
    if graph.is_weighted:
        arrays["adj_data"] = a.data
    x = graph.x.numpy()
    blob = _packed(arrays | _features(x))
    if x.nbytes > allowed_bytes(len(blob)):
        # So few entries that a reader would take them for a trap.
        blob = _packed(arrays | {"x": x})
    write_atomically(path, blob)
    return path


def _features(x: np.ndarray) -> dict[str, np.ndarray]:
    if np.count_nonzero(x) * 3 >= x.size:
        return {"x": x}
    sparse = sp.csr_array(x)
    return {
        "x_indptr": sparse.indptr,
        "x_indices": sparse.indices,
        "x_data": sparse.data,
        "x_shape": np.array(x.shape),
    }


def _packed(arrays: dict[str, np.ndarray]) -> bytes:
    blob = io.BytesIO()
    np.savez_compressed(blob, allow_pickle=False, **arrays)
    return blob.getvalue()
