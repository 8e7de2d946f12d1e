"""Rows of a sparse product whose dense side need not fit into memory.

:func:`product_rows` is the unit of all blocked work: a pure function of a slice of sparse rows and of
something that hands out rows of the dense side. It may run anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.graph.array_file import ArrayFile
from gcsr.models.sparse import weighted_sums

# What is multiplied at once: small enough for the arrays in between to stay in the processor's cache.
ROWS_TOGETHER, ENTRIES_TOGETHER = 2**15, 2**18


class DenseRows(Protocol):
    """The dense side of a product: rows by number, wherever they lie."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        ...

    def read(self, start: int, stop: int) -> np.ndarray:
        """Rows ``start`` up to, not including, ``stop``, as float32."""
        ...

    def take(self, ids: np.ndarray) -> np.ndarray:
        """Some rows, in the order asked for."""
        ...


@dataclass(frozen=True)
class ArrayRows:
    """Rows that are in memory."""

    array: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return tuple(self.array.shape)

    def read(self, start: int, stop: int) -> np.ndarray:
        """A view of some rows."""
        return self.array[start:stop]

    def take(self, ids: np.ndarray) -> np.ndarray:
        """Some rows, in the order asked for."""
        return np.asarray(self.array[ids])


@dataclass(frozen=True)
class Ones:
    """A column of ones."""

    count: int

    @property
    def shape(self) -> tuple[int, ...]:
        """One column."""
        return self.count, 1

    def read(self, start: int, stop: int) -> np.ndarray:
        """As many ones."""
        return np.ones((stop - start, 1), np.float32)

    def take(self, ids: np.ndarray) -> np.ndarray:
        """As many ones."""
        return np.ones((ids.size, 1), np.float32)


@dataclass(frozen=True, eq=False)
class RowSlice:
    """Some rows of a sparse matrix: pointers from zero, columns in ascending order within a row."""

    pointers: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, matrix: sp.csr_array) -> RowSlice:
        """The rows of a scipy matrix, as float32."""
        return cls(matrix.indptr, matrix.indices, matrix.data.astype(np.float32))

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.pointers.size) - 1

    def cuts(self) -> Iterator[tuple[int, int]]:
        """Rows in parts that stay close to the processor."""
        each = int(self.pointers[-1]) / max(1, self.count)
        step = max(64, min(ROWS_TOGETHER, int(ENTRIES_TOGETHER / max(1.0, each))))
        for first in range(0, self.count, step):
            yield first, min(self.count, first + step)


def product_rows(
    rows: RowSlice, dense: DenseRows, columns_at_once: int, table: Table | None = None
) -> Tensor:
    """The product of sparse rows and a dense matrix, with at most so many dense rows in memory.

    The same bytes as the product in memory: every row is summed in the order of its columns. A sum
    that goes on in the next block of columns begins there as one more summand of weight one. A
    ``table`` that is handed in saves allocating one.
    """
    total, width = dense.shape
    if total <= columns_at_once:
        return _sums(rows, torch.from_numpy(dense.read(0, total)))
    table = table or Table(columns_at_once, width)
    result = torch.zeros((rows.count, width))
    for start in range(0, total, columns_at_once):
        stop = min(total, start + columns_at_once)
        table.load(dense, start, stop)
        for first, last in rows.cuts():
            table.add_to(result, rows, first, last)
    return result


class Table:
    """Some rows of the dense side, and before them room for sums that are not complete yet."""

    def __init__(self, columns_at_once: int, width: int) -> None:
        self._room = torch.empty((ROWS_TOGETHER + columns_at_once, width))
        self._start = self._stop = 0

    def load(self, dense: DenseRows, start: int, stop: int) -> None:
        """Hold these rows of the dense side."""
        place = self._room[ROWS_TOGETHER : ROWS_TOGETHER + stop - start]
        if isinstance(dense, ArrayFile):
            dense.read_into(place.numpy(), start)
        else:
            place.copy_(torch.from_numpy(dense.read(start, stop)))
        self._start, self._stop = start, stop

    def add_to(self, result: Tensor, rows: RowSlice, first: int, last: int) -> None:
        """Go on with the sums of some rows, as far as the dense rows at hand reach."""
        begin, end = int(rows.pointers[first]), int(rows.pointers[last])
        columns = rows.columns[begin:end]
        inside = (columns >= self._start) & (columns < self._stop)
        # How many entries of each row there are, from how many there are before its end.
        before = np.concatenate([[0], np.cumsum(inside)])
        counts = np.diff(before[rows.pointers[first : last + 1] - begin])
        pointers = np.concatenate([[0], np.cumsum(counts + 1)])
        sofar = np.zeros(int(pointers[-1]), bool)
        sofar[pointers[:-1]] = True
        chosen = np.empty(sofar.size, np.int64)
        chosen[sofar] = np.arange(last - first)
        chosen[~sofar] = columns[inside] + (ROWS_TOGETHER - self._start)
        values = np.ones(sofar.size, np.float32)
        values[~sofar] = rows.values[begin:end][inside]
        self._room[: last - first] = result[first:last]
        result[first:last] = _sums(RowSlice(pointers, chosen, values), self._room)


def _sums(rows: RowSlice, table: Tensor) -> Tensor:
    index = np.int32 if max(rows.columns.size, table.shape[0]) < 2**31 else np.int64
    return weighted_sums(
        torch.from_numpy(rows.pointers.astype(index, copy=False)),
        torch.from_numpy(rows.columns.astype(index, copy=False)),
        torch.from_numpy(rows.values),
        table,
    )
