"""Sparse matrices of torch and scipy, and their products, block by block: the same bytes as at once.

A row is summed in the order of its columns. A sum that goes on in the next block of columns begins
there as one more summand, of weight one, which changes no bit of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]

# What is multiplied at once: small enough for the arrays in between to stay in the processor's cache.
ROWS_TOGETHER, ENTRIES_TOGETHER = 2**15, 2**18


def weighted_sums(pointers: Tensor, columns: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """A sparse matrix times a dense one, as weighted bags of embeddings.

    Every row is summed in order, so the result is the same bytes every time, which cuSPARSE does not
    promise; on a CPU it is also faster.
    """
    return torch.nn.functional.embedding_bag(
        columns,
        table.contiguous(),
        pointers,
        mode="sum",
        per_sample_weights=values,
        include_last_offset=True,
    )


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Some rows of a sparse matrix.

    Args:
        pointers: where each row begins in the other two, from zero; one more than there are rows.
        columns: ascending within a row.
        values: float32.
    """

    pointers: Array
    columns: Array
    values: Array

    @classmethod
    def of(cls, matrix: sp.csr_array) -> RowBlock:
        """The rows of a scipy matrix, as float32."""
        return cls(matrix.indptr, matrix.indices, matrix.data.astype(np.float32))

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.pointers.size) - 1

    def cuts(self, most: int = ROWS_TOGETHER) -> Iterator[tuple[int, int]]:
        """Rows in parts that stay close to the processor, of at most ``most``."""
        each = int(self.pointers[-1]) / max(1, self.count)
        step = max(64, min(most, int(ENTRIES_TOGETHER / max(1.0, each))))
        for first in range(0, self.count, step):
            yield first, min(self.count, first + step)

    def part(self, first: int, last: int) -> RowBlock:
        """Rows ``first`` up to, not including, ``last``."""
        begin, end = int(self.pointers[first]), int(self.pointers[last])
        pointers = self.pointers[first : last + 1] - begin
        return RowBlock(pointers, self.columns[begin:end], self.values[begin:end])

    def touches(self, start: int, stop: int) -> bool:
        """Whether there is an entry in columns ``start`` up to, not including, ``stop``."""
        return bool(self._inside(start, stop).any())

    def between(self, start: int, stop: int) -> RowBlock:
        """The same rows with those columns alone, numbered from ``start``."""
        inside = self._inside(start, stop)
        # How many entries of each row there are, from how many there are before its end.
        before = np.concatenate([[0], np.cumsum(inside)])
        return RowBlock(before[self.pointers], self.columns[inside] - start, self.values[inside])

    def compacted(self) -> tuple[Array, RowBlock]:
        """The columns that have an entry, and the same rows with columns numbered among these."""
        used, columns = np.unique(self.columns, return_inverse=True)
        return used, RowBlock(self.pointers, columns, self.values)

    def times(self, table: Tensor) -> Tensor:
        """The product with a dense matrix that is in memory."""
        index = np.int32 if max(self.columns.size, table.shape[0]) < 2**31 else np.int64
        return weighted_sums(
            torch.from_numpy(self.pointers.astype(index, copy=False)),
            torch.from_numpy(self.columns.astype(index, copy=False)),
            torch.from_numpy(self.values),
            table,
        )

    def sums(self) -> Tensor:
        """The product with a column of ones, which is not stored."""
        alone = RowBlock(self.pointers, np.zeros_like(self.columns), self.values)
        return alone.times(torch.ones((1, 1)))

    def _inside(self, start: int, stop: int) -> Array:
        return (self.columns >= start) & (self.columns < stop)


class PartialSums:
    """Sums that go on with the next rows of the dense side, which come after room for ``sums``."""

    def __init__(self, rows: int, width: int, sums: int = ROWS_TOGETHER) -> None:
        self._sums, self._room = sums, torch.empty((sums + rows, width))

    def place(self, rows: int) -> Tensor:
        """Where so many rows of the dense side are to be written; those that were there go."""
        if self._sums + rows > self._room.shape[0]:
            self._room = torch.empty((self._sums + rows, self._room.shape[1]))
        return self._room[self._sums : self._sums + rows]

    def add_to(self, sums: Tensor, rows: RowBlock) -> None:
        """Go on with the sums of some rows; their columns are numbered as the dense rows at hand."""
        for first, last in rows.cuts(self._sums):
            part = rows.part(first, last)
            counts = np.diff(part.pointers)
            own: slice | Tensor = slice(first, last)
            if 2 * np.count_nonzero(counts) < counts.size:
                touched = np.flatnonzero(counts)
                own, counts = torch.from_numpy(touched + first), counts[touched]
            if counts.size:
                self._room[: counts.size] = sums[own]
                sums[own] = _continued(counts, part, self._sums).times(self._room)


def _continued(counts: Array, rows: RowBlock, room: int) -> RowBlock:
    """Rows of a :class:`PartialSums`: each begins with the sum so far, then come its entries."""
    pointers = np.concatenate([[0], np.cumsum(counts + 1)])
    so_far = np.zeros(int(pointers[-1]), bool)
    so_far[pointers[:-1]] = True
    places = np.empty(so_far.size, np.int64)
    places[so_far] = np.arange(counts.size)
    entries = ~so_far
    places[entries] = rows.columns + room
    weights = np.ones(so_far.size, np.float32)
    weights[entries] = rows.values
    return RowBlock(pointers, places, weights)


def read_only(array: Array) -> Tensor:
    """A tensor over read-only memory."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writ")
        return torch.from_numpy(array)


# -- CSR tensors of torch and matrices of scipy: the same arrays, seen by either library --------------


def is_sparse(x: Tensor) -> bool:
    """Whether a tensor is in CSR form."""
    return x.layout == torch.sparse_csr


def csr_tensor(
    matrix: sp.csr_array,
    device: torch.device,
    dtype: torch.dtype,
    index: type = np.int64,
    *,
    copy: bool = True,
) -> Tensor:
    """A scipy matrix as a torch CSR tensor with indices of type ``index``."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        # Some versions of torch say so although it is asked for.
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(index, copy=copy)),
            torch.from_numpy(matrix.indices.astype(index, copy=copy)),
            torch.from_numpy(matrix.data.copy() if copy else matrix.data).to(dtype),
            matrix.shape,
            device=device,
            check_invariants=False,
        )


def csr_matrix(x: Tensor) -> sp.csr_array:
    """A torch CSR tensor as a scipy matrix, without a copy on the CPU."""
    x = x.detach().cpu()
    arrays = (part.numpy() for part in (x.values(), x.col_indices(), x.crow_indices()))
    return sp.csr_array(tuple(arrays), shape=tuple(x.shape))
