"""Tables of edges, node features, labels and splits, read by blocks."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gcsr.data.npz import load_array
from gcsr.utils.errors import InputError, require
from gcsr.utils.safe_io import UNREADABLE, reason

LINES_AT_ONCE = 2**20
COLUMNS = "2 columns (source, target) or 3 (source, target, weight)"
# numpy only warns about an empty table.
_UNREADABLE: tuple[type[Exception], ...] = (*UNREADABLE, UserWarning)
# Sources, targets and, where there is a third column, weights.
Edges = tuple[np.ndarray, np.ndarray, np.ndarray | None]


def edges_of(path: Path) -> Iterator[Edges]:
    """Edges of a ``.csv``, ``.parquet`` or ``.npy`` file, some at a time.

    Two columns are sources and targets, a third one weights; a csv file may have a line of names.
    """
    if path.suffix == ".npy":
        yield from _from_npy(path)
    elif path.suffix == ".parquet":
        yield from _from_parquet(path)
    else:
        with readable(path), path.open("rb") as stream:
            yield from edges_of_text(str(path), stream)


def edges_of_text(name: str, stream: Any) -> Iterator[Edges]:
    """Edges of a table of comma-separated numbers."""
    text = io.TextIOWrapper(io.BufferedReader(stream), encoding="ascii")
    first = text.readline()
    columns = first.count(",") + 1
    require(columns in (2, 3), f"{name}: must have {COLUMNS}, got {columns}.")
    kind = [("source", "<i8"), ("target", "<i8"), ("weight", "<f8")][:columns]
    lines = [first] if all(map(_is_number, first.split(","))) else []
    while True:
        lines += text.readlines(LINES_AT_ONCE * 8)
        if not any(line.strip() for line in lines):
            return
        try:
            block = np.loadtxt(lines, dtype=kind, delimiter=",", comments=None, ndmin=1)
        except ValueError as error:
            raise InputError(f"{name}: not a table of edges ({error}).") from None
        yield block["source"], block["target"], block["weight"] if columns == 3 else None
        lines = []


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def list_of(path: Path, what: str) -> np.ndarray:
    """Integers, one per line or as a ``.npy`` array: labels or node ids."""
    with readable(path), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        if path.suffix == ".npy":
            values = np.array(load_array(path))
        else:
            values = np.loadtxt(path, dtype=np.int64, delimiter=",", comments=None, ndmin=1)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    require(
        values.ndim == 1 and values.dtype.kind in "iu",
        f"{path}: {what} must be a list of integers, got {values.dtype} of shape {values.shape}.",
    )
    return np.asarray(values.astype(np.int64))


def matrix_of(path: Path) -> np.ndarray:
    """Node features of a ``.npy`` file, mapped rather than read."""
    require(path.suffix == ".npy", f"{path}: node features must be a .npy file.")
    values = load_array(path)
    require(
        values.ndim == 2 and values.dtype.kind in "fiu",
        f"{path}: must be a matrix of numbers, got {values.dtype} of shape {values.shape}.",
    )
    return values


def _from_npy(path: Path) -> Iterator[Edges]:
    pairs = load_array(path)
    require(
        pairs.ndim == 2 and 2 in pairs.shape and pairs.dtype.kind in "iu",
        f"{path}: must be two rows of node ids, got {pairs.dtype} of shape {pairs.shape}.",
    )
    pairs = pairs if pairs.shape[0] == 2 else pairs.T
    for start in range(0, pairs.shape[1], LINES_AT_ONCE):
        sources, targets = (np.array(part[start : start + LINES_AT_ONCE]) for part in pairs)
        yield sources, targets, None


def _from_parquet(path: Path) -> Iterator[Edges]:
    try:
        from pyarrow import parquet  # noqa: PLC0415 - an extra
    except ImportError:
        raise InputError(
            f"{path}: reading parquet needs pyarrow (pip install 'gcsr[parquet]'); csv does not."
        ) from None
    with readable(path):
        file = parquet.ParquetFile(path)
        width = len(file.schema_arrow.names)
        require(width in (2, 3), f"{path}: must have {COLUMNS}, got {width}.")
        for batch in file.iter_batches(batch_size=LINES_AT_ONCE):
            columns = [batch.column(i).to_numpy(zero_copy_only=False) for i in range(width)]
            yield columns[0], columns[1], columns[2].astype(np.float64) if width == 3 else None


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn whatever a cut, corrupt or hostile file makes its readers raise into one sentence."""
    try:
        yield
    except InputError:
        raise
    except _UNREADABLE as error:
        raise InputError(f"{path}: cannot be read ({reason(error)}).") from None
