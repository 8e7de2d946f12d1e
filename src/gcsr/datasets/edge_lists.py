"""Tables of edges, node features, labels and splits, read by blocks."""

from __future__ import annotations

import io
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gcsr.utils.errors import InputError, require

LINES_AT_ONCE = 2**20
COLUMNS = "source, target and maybe weight"
_UNREADABLE = (
    ArithmeticError,
    EOFError,
    LookupError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    UserWarning,  # an empty table is only a warning to numpy
    tokenize.TokenError,  # of numpy's reader of headers
    zipfile.BadZipFile,
    zlib.error,
)
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
    require(
        columns in (2, 3),
        f"{name}: has {columns} columns; {COLUMNS} are read.",
    )
    kind: list[tuple[str, str]] = [("source", "<i8"), ("target", "<i8"), ("weight", "<f8")][
        :columns
    ]
    named = any(not _is_number(word) for word in first.split(","))
    lines = [] if named else [first]
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


def list_of(path: Path, what: str) -> np.ndarray:
    """Whole numbers, one per line or as a ``.npy`` array: labels or node ids."""
    with readable(path), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        if path.suffix == ".npy":
            values = np.array(_mapped(path))
        else:
            values = np.loadtxt(path, dtype=np.int64, delimiter=",", comments=None, ndmin=1)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    require(
        values.ndim == 1 and values.dtype.kind in "iu",
        f"{path}: {what} must be a list of whole numbers, not {values.dtype} of shape {values.shape}.",
    )
    return np.asarray(values.astype(np.int64))


def matrix_of(path: Path) -> np.ndarray:
    """Node features of a ``.npy`` file, mapped rather than read."""
    require(path.suffix == ".npy", f"{path}: node features are read from a .npy file.")
    with readable(path):
        values = _mapped(path)
    require(
        values.ndim == 2 and values.dtype.kind in "fiu",
        f"{path}: holds {values.dtype} of shape {values.shape}; a matrix of numbers is needed.",
    )
    return np.asarray(values)


def _from_npy(path: Path) -> Iterator[Edges]:
    with readable(path):
        pairs = _mapped(path)
    require(
        pairs.ndim == 2 and 2 in pairs.shape and pairs.dtype.kind in "iu",
        f"{path}: holds {pairs.dtype} of shape {pairs.shape}; two rows of node ids are read.",
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
        require(
            width in (2, 3),
            f"{path}: has {width} columns; {COLUMNS} are read.",
        )
        for batch in file.iter_batches(batch_size=LINES_AT_ONCE):
            columns = [batch.column(i).to_numpy(zero_copy_only=False) for i in range(width)]
            yield columns[0], columns[1], columns[2].astype(np.float64) if width == 3 else None


def _mapped(path: Path) -> np.ndarray:
    """An array that is mapped first: a header cannot promise more than the file has."""
    values = np.load(path, mmap_mode="r", allow_pickle=False)
    require(isinstance(values, np.ndarray), f"{path}: holds no single array.")
    return np.asarray(values)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Whatever a file that is cut, corrupt or hostile makes its readers raise becomes one sentence."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}).") from None
    except _UNREADABLE as error:
        raise InputError(f"{path}: cannot be read ({error}).") from None


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
