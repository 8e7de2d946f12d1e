"""Matrices on disk: the adjacency and the features of a graph folder, read by rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NoReturn, Self

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from gcsr.data.array_file import WALK_BYTES, ArrayFile
from gcsr.data.features import from_csr, take_columns
from gcsr.utils.errors import InputError, require
from gcsr.utils.safe_io import never_falls

NEEDS_MEMORY = (
    "this needs the whole graph in memory, and it was opened to stay on disk; load it with a larger"
    " memory=BYTES, or choose what works in blocks."
)
# Files of sparse features in a graph folder.
SPARSE_FILES = ("features_indptr", "features_indices", "features_values")
_AGAIN = "gcsr convert writes the folder again."


@dataclass(frozen=True)
class StoredMatrix:
    """A CSR matrix on disk: an adjacency, whose blocks of rows are scipy matrices, or features.

    ``weights`` are its values (``None``: ones), ``width`` its columns (``None``: as many as rows).
    """

    indptr: ArrayFile
    indices: ArrayFile
    weights: ArrayFile | None
    width: int | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows = self.indptr.rows - 1
        return rows, rows if self.width is None else self.width

    @property
    def nnz(self) -> int:
        """Stored entries."""
        return self.indices.rows

    def __getattr__(self, name: str) -> NoReturn:
        # Code that expects a matrix in memory gets a clear error.
        if name.startswith("_"):
            raise AttributeError(name)
        raise InputError(f"edges: {NEEDS_MEMORY}")

    def __getitem__(self, _: object) -> NoReturn:
        raise InputError(f"edges: {NEEDS_MEMORY}")

    def rows(self, start: int, stop: int) -> sp.csr_array:
        """Rows ``start`` up to, not including, ``stop``; every column."""
        pointers = self.indptr.read(start, stop + 1)
        first, last = int(pointers[0]), int(pointers[-1])
        self.require_pointers(0 <= first <= last <= self.nnz and never_falls(pointers))
        values = None if self.weights is None else self.weights.read(first, last)
        return self._matrix(pointers - first, self.indices.read(first, last), values)

    def take(self, ids: ArrayLike) -> sp.csr_array:
        """The rows of some nodes."""
        ids = np.asarray(ids, np.int64)
        if ids.size and bool((np.diff(ids) == 1).all()):
            return self.rows(int(ids[0]), int(ids[-1]) + 1)
        starts, stops = self.indptr.take(ids), self.indptr.take(ids + 1)
        sizes = stops - starts
        fine = (stops >= starts) & (starts >= 0) & (stops <= self.nnz)
        self.require_pointers(bool(fine.all()))
        pointers = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        places = np.arange(int(pointers[-1])) + np.repeat(starts - pointers[:-1], sizes)
        values = None if self.weights is None else self.weights.take(places)
        return self._matrix(pointers, self.indices.take(places), values)

    def cuts(self, most_rows: int, most_entries: int) -> Iterator[tuple[int, int]]:
        """Blocks of rows within both bounds; a row beyond the second is a block of its own."""
        nodes, window = self.shape[0], 2**20
        start = 0
        while start < nodes:
            stop = min(nodes, start + min(window, most_rows))
            pointers = self.indptr.read(start, stop + 1)
            room = int(np.searchsorted(pointers, int(pointers[0]) + most_entries, "right")) - 1
            stop = start + min(stop - start, max(1, room))
            yield start, stop
            start = stop

    def require_ends(self) -> None:
        """Refuse row pointers that do not begin and end as they must."""
        ends = int(self.indptr.read(0, 1)[0]), int(self.indptr.read(self.shape[0])[0])
        self.require_pointers(ends == (0, self.nnz))

    def require_pointers(self, fine: bool) -> None:
        """Refuse row pointers that are not ``fine``."""
        require(fine, f"{self.indptr.path}: must describe {self.nnz} entries; {_AGAIN}")

    def _matrix(
        self, pointers: np.ndarray, columns: np.ndarray, values: np.ndarray | None
    ) -> sp.csr_array:
        width = self.shape[1]
        require(
            columns.size == 0 or (int(columns.min()) >= 0 and int(columns.max()) < width),
            f"{self.indices.path}: must be 0..{width - 1}; {_AGAIN}",
        )
        if values is None:
            values = np.ones(columns.size, np.float32)
        index = np.int32 if max(columns.size, width) < 2**31 else np.int64
        arrays = (values, columns.astype(index, copy=False), pointers.astype(index))
        return sp.csr_array(arrays, shape=(pointers.size - 1, width))


def edges_among(adjacency: sp.csr_array | StoredMatrix, nodes: ArrayLike) -> sp.csr_array:
    """The edges among some nodes, in memory."""
    ids = np.asarray(nodes)
    rows = adjacency.take(ids) if isinstance(adjacency, StoredMatrix) else adjacency[ids]
    return sp.csr_array(rows[:, ids])


@dataclass(frozen=True)
class StoredFeatures:
    """Sparse features on disk, with the interface of :class:`~gcsr.data.array_file.ArrayFile`.

    Rows are unfolded when they are read.
    """

    matrix: StoredMatrix

    @classmethod
    def of(cls, files: Mapping[str, ArrayFile], width: int) -> Self:
        """Of the files of a folder."""
        indptr, indices, values = (files[name] for name in SPARSE_FILES)
        return cls(StoredMatrix(indptr, indices, values, width))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.matrix.shape

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes of all files."""
        stored = self.matrix.indptr, self.matrix.indices, self.matrix.weights
        return sum(file.nbytes for file in stored if file is not None)

    def read(
        self, start: int = 0, stop: int | None = None, columns: np.ndarray | None = None
    ) -> np.ndarray:
        """Rows ``start`` up to, not including, ``stop``; some columns, or all."""
        rows = self.matrix.rows(start, self.rows if stop is None else stop)
        return np.asarray((rows if columns is None else rows[:, columns]).toarray())

    def take(self, ids: np.ndarray) -> np.ndarray:
        """Some rows, in the order asked for."""
        return np.asarray(self.matrix.take(ids).toarray())

    def map(self) -> np.ndarray:
        """All rows."""
        return self.read()

    def blocks(self) -> Iterator[np.ndarray]:
        """All rows, in blocks of moderate size."""
        step = max(1, WALK_BYTES // (4 * self.shape[1]))
        for start in range(0, self.rows, step):
            yield self.read(start, min(self.rows, start + step))


@dataclass(frozen=True)
class StoredRows:
    """Rows of a file; ``columns`` of them, or all."""

    file: ArrayFile | StoredFeatures
    columns: Tensor | None = None
    device: ClassVar = torch.device("cpu")

    @property
    def is_sparse(self) -> bool:
        """Whether the file has sparse rows."""
        return isinstance(self.file, StoredFeatures)

    def __getitem__(self, nodes: Tensor, /) -> Tensor:  # dense
        found = self.kept(nodes)
        return found.to_dense() if self.is_sparse else found

    def kept(self, nodes: Tensor) -> Tensor:
        """The rows of some nodes, sparse if the file's are."""
        ids = nodes.cpu().numpy()
        if isinstance(self.file, StoredFeatures):
            found = from_csr(self.file.matrix.take(ids))
        else:
            found = torch.from_numpy(self.file.take(ids))
        return found if self.columns is None else take_columns(found, self.columns)
