"""Graph files: one ``.npz`` of plain arrays, never a pickle.

======================  ===========================================================================
``adj_indptr``          row pointers of the adjacency in CSR form
``adj_indices``         its column indices
``adj_data``            edge weights (optional; absent means unweighted)
``y``                   one integer class per node, -1 where unknown; or a 0/1 matrix (multi-label)
``x``                   dense features, or in CSR form:
``x_indptr, x_indices`` row pointers and columns of sparse features
``x_data``              their values (optional; absent means 1)
``x_shape``             rows and columns of the sparse features
``train``               node ids
``val, test``           node ids (optional; see :meth:`gcsr.Graph.from_arrays`)
``num_classes``         number of classes (optional; by default the largest label plus one)
``inductive``           whether validation and test nodes are hidden while condensing (optional)
======================  ===========================================================================
"""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from gcsr.data.array_file import npy_header
from gcsr.data.arrays import MOST_CLASSES, SPLITS
from gcsr.data.features import csr_matrix, dense, filled, is_sparse, stays_sparse
from gcsr.utils.errors import InputError, require
from gcsr.utils.safe_io import (
    allowed_bytes,
    is_file,
    naming,
    never_falls,
    parsing,
    reason,
    require_path,
    require_unfoldable,
    write_atomically,
)

if TYPE_CHECKING:
    from gcsr.data.graph import Graph

_SUFFIX = ".npy"
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 1
# The first bytes of a zip archive.
_BEGIN, _CUT_OFF = b"PK\3\4", "; the file may be cut off"
# Sparse features are never unfolded at once, but hashed by unfolded rows: so many times the bytes.
WALKED = 64


def load_arrays(path: Path, only: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of an npz file, read without pickles; those not in ``only`` are never opened."""
    with _refusing(path, "npz file"), path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
        members = _members(archive, only)
        needed = sum(info.file_size for info in members.values())
        require_unfoldable("its arrays", needed, path.stat().st_size)
        return {name: _member(archive, name, info) for name, info in members.items()}


def load_array(path: Path) -> np.ndarray:
    """The array of an npy file, mapped into memory rather than read."""
    with _refusing(path, "array"):
        with path.open("rb") as stream:
            shape, fortran, dtype = npy_header(stream, path.stat().st_size)
            start = stream.tell()
        if not math.prod(shape):
            return np.empty(shape, dtype)  # an empty array cannot be mapped
        return np.asarray(np.memmap(path, dtype, "r", start, shape, order="F" if fortran else "C"))


@contextmanager
def _refusing(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a broken or unsafe file raises into one sentence."""
    require(is_file(path), f"{path}: no such file.")
    refusal = f"{path} must be an {kind}, got a file that cannot be read"
    with parsing(refusal, _CUT_OFF if _is_cut_off(path) else ""), naming(path):
        yield


def _is_cut_off(path: Path) -> bool:
    """Whether a file begins like a zip archive and lacks its end."""
    with suppress(OSError), path.open("rb") as stream:
        return stream.read(len(_BEGIN)) == _BEGIN and not zipfile.is_zipfile(stream)
    return False


def _members(archive: zipfile.ZipFile, only: Collection[str] | None) -> dict[str, zipfile.ZipInfo]:
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(_SUFFIX)
        if only is not None and name not in only:
            continue
        shown = reason(name)
        require(name not in found, f"{shown} is there twice.")
        require(info.filename.endswith(_SUFFIX), f"{shown} is not an array.")
        require(not info.flag_bits & _ENCRYPTED, f"{shown} is encrypted.")
        require(
            info.compress_type in _METHODS,
            f"{shown} must be compressed with deflate, as numpy.savez_compressed does.",
        )
        found[name] = info
    return found


def _member(archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> np.ndarray:
    try:
        # Opened twice: after a seek, zipfile may leave the checksum unchecked.
        with archive.open(info) as stream:
            npy_header(stream, info.file_size)
        with archive.open(info) as stream, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the text in the header
            return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
    except InputError:
        raise
    except Exception as error:
        raise ValueError(f"{name}: {reason(error)}") from None


def read_npz(path: Path) -> dict[str, Any]:
    """Arguments of :meth:`gcsr.Graph.from_arrays`."""
    arrays = load_arrays(path)
    advice = "; Graph.from_arrays(...).to_npz(path) writes such a file"
    require_arrays(path, arrays, ("adj_indptr", "adj_indices", "y", "train"), advice)
    y = arrays["y"]
    require(y.ndim in (1, 2), f"{path}: y must have one class per node, got shape {y.shape}.")
    indptr, _ = _integer_lists(path, "adj", arrays)
    rows = {"adj_indptr": indptr.shape[0] - 1, "y": y.shape[0]}
    if "x" in arrays:
        x: np.ndarray | sp.csr_array = arrays["x"]
        _require_same_rows(path, rows | {"x": x.shape[0]} if x.ndim else rows)
    else:
        require(
            {"x_indptr", "x_indices", "x_shape"} <= arrays.keys(),
            f"{path}: must hold the features x, or x_indptr, x_indices and x_shape, but lacks them.",
        )
        shape = shape_of(path, "x", arrays)
        _require_same_rows(path, rows | {"x_shape": shape[0]})
        require(
            shape[1] > 0,
            f"{path}: x_shape must be [{shape[0]}, columns], got [{shape[0]}, {shape[1]}].",
        )
    adjacency = checked_csr(path, "adj", arrays, (y.shape[0], y.shape[0]))
    if "x" not in arrays:
        x = checked_csr(path, "x", arrays, shape)
        require_features(path, x, path.stat().st_size)
    stored = arrays.get("inductive", np.array(False))
    require(
        stored.shape == () and stored.dtype == np.bool_,
        f"{path}: inductive must be a single truth value, got {stored.dtype} of shape {stored.shape}.",
    )
    classes = arrays.get("num_classes", np.array(0))
    require(
        classes.shape == () and classes.dtype.kind in "iu" and 0 <= int(classes) <= MOST_CLASSES,
        f"{path}: num_classes must be a single integer 0..{MOST_CLASSES}.",
    )
    return {
        "x": x,
        "edges": adjacency,
        "y": y,
        "weighted": "adj_data" in arrays,
        **{split: arrays.get(split) for split in SPLITS},
        "inductive": bool(stored),
        "num_classes": int(classes),
        "name": path.stem,
    }


def require_arrays(
    path: Path, arrays: Mapping[str, np.ndarray], needed: Collection[str], advice: str = ""
) -> None:
    """Refuse a file that lacks some arrays."""
    missing = [key for key in needed if key not in arrays]
    require(
        not missing,
        f"{path}: must hold the arrays {', '.join(needed)}, but lacks {', '.join(missing)}{advice}.",
    )


def shape_of(path: Path, prefix: str, arrays: dict[str, np.ndarray]) -> tuple[int, int]:
    """The two integers of ``{prefix}_shape``."""
    shape = arrays[f"{prefix}_shape"]
    require(
        shape.shape == (2,) and shape.dtype.kind in "iu",
        f"{path}: {prefix}_shape must be two integers, got {shape.dtype} of shape {shape.shape}.",
    )
    return int(shape[0]), int(shape[1])


def require_features(path: Path, x: sp.csr_array, file_bytes: int) -> None:
    """Refuse a few bytes of sparse features that stand for a huge matrix, unfolded or walked over."""
    needed = math.prod(x.shape) * np.dtype(np.float32).itemsize
    times = WALKED if stays_sparse(x) else 1
    require_unfoldable(f"{path}: {x.shape[0]} x {x.shape[1]} features", needed, times * file_bytes)


def _require_same_rows(path: Path, rows: Mapping[str, int]) -> None:
    """Refuse arrays of different numbers of nodes, and name the one that differs from the others."""
    counts = [*rows.values()]
    common = max(counts, key=counts.count)
    if counts.count(common) == len(counts):
        return
    others = [name for name, count in rows.items() if count != common]
    agreeing = [name for name in rows if name not in others]
    if len(agreeing) == 1:
        *first, last = rows
        found = ", ".join(map(str, counts))
        raise InputError(
            f"{path}: {', '.join(first)} and {last} must have the same number of nodes, got {found}."
        )
    (name,), said = others, f"{common} nodes, as {' and '.join(agreeing)} have"
    got = f"{rows[name]}" if name != "adj_indptr" else f"{rows[name] + 1} entries for {rows[name]}"
    raise InputError(f"{path}: {name} must be of {said}, got {got}.")


def _integer_lists(
    path: Path, prefix: str, arrays: dict[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """``{prefix}_indptr`` and ``{prefix}_indices``."""
    indptr = arrays[f"{prefix}_indptr"]
    indices = arrays[f"{prefix}_indices"]
    integral = indptr.dtype.kind in "iu" and indices.dtype.kind in "iu"
    require(
        integral and indptr.ndim == indices.ndim == 1,
        f"{path}: {prefix}_indptr and {prefix}_indices must be lists of integers, got {indptr.dtype}"
        f" of shape {indptr.shape} and {indices.dtype} of shape {indices.shape}.",
    )
    return indptr, indices


def checked_csr(
    path: Path, prefix: str, arrays: dict[str, np.ndarray], shape: tuple[int, int]
) -> sp.csr_array:
    """The CSR matrix of the arrays ``{prefix}_indptr``, ``_indices`` and ``_data``, checked."""
    indptr, indices = _integer_lists(path, prefix, arrays)
    data = arrays.get(f"{prefix}_data", np.ones(indices.shape[0], dtype=np.float32))
    require(data.dtype.kind in "biuf", f"{path}: {prefix}_data must be numbers, got {data.dtype}.")
    indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
    consistent = (
        shape[0] >= 0
        and 0 <= shape[1] < 2**63
        and indptr.shape[0] == shape[0] + 1
        and data.shape == indices.shape
        and int(indptr[0]) == 0
        and int(indptr[-1]) == indices.shape[0]
        and never_falls(indptr)
    )
    require(
        consistent,
        f"{path}: {prefix}_indptr, {prefix}_indices and {prefix}_data must describe a {shape[0]} x"
        f" {shape[1]} matrix, as indptr, indices and data of scipy.sparse.csr_array do.",
    )
    outside = indices[(indices < 0) | (indices >= shape[1])]
    require(
        outside.size == 0,
        f"{path}: {prefix}_indices must be columns 0..{shape[1] - 1}, got"
        f" {outside[0] if outside.size else ''}.",
    )
    if data.dtype.kind != "f":
        data = data.astype(data.dtype.newbyteorder("="), copy=False)
    else:  # scipy computes neither with half precision nor in another byte order
        with np.errstate(over="ignore"):  # numbers beyond float64 become infinite and are refused
            data = data.astype(np.float32 if data.dtype.itemsize <= 4 else np.float64, copy=False)
    return sp.csr_array((data, indices, indptr), shape=shape)


def write_npz(graph: Graph, path: str | Path) -> Path:
    """See :meth:`gcsr.Graph.to_npz`; the file appears whole or not at all."""
    require_path(path)
    path = Path(path)
    a = graph.adjacency
    arrays = {
        "adj_indptr": a.indptr,
        "adj_indices": a.indices,
        "y": graph.y.numpy().astype(np.int8) if graph.multi_label else graph.y.numpy(),
        **{split: getattr(graph, split).numpy() for split in SPLITS},
        "num_classes": np.array(graph.num_classes),
        "inductive": np.array(graph.inductive),
    }
    if graph.is_weighted:
        arrays["adj_data"] = a.data
    x, blob = graph.x, b""
    if filled(x) * 3 < x.numel():
        sparse = csr_matrix(x) if is_sparse(x) else sp.csr_array(x.numpy())
        features = {
            "x_indptr": sparse.indptr,
            "x_indices": sparse.indices,
            "x_data": sparse.data,
            "x_shape": np.array(x.shape),
        }
        blob = _packed(arrays | features)
    # A reader would refuse too few bytes for a large matrix.
    if not blob or (not is_sparse(x) and x.nbytes > allowed_bytes(len(blob))):
        blob = _packed(arrays | {"x": dense(x, "this file").numpy()})
    write_atomically(path, blob)
    return path


def _packed(arrays: dict[str, np.ndarray]) -> bytes:
    blob = io.BytesIO()
    np.savez_compressed(blob, allow_pickle=False, **arrays)
    return blob.getvalue()
