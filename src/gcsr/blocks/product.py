"""Rows of a sparse product whose dense side need not fit into memory.

:func:`product_rows` is the unit of all blocked work: a pure function of a slice of sparse rows and of
something that hands out rows of the dense side. It may run anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from gcsr.graph.array_file import ArrayFile
from gcsr.products import RowBlock, Table


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
    """A column of ones: their product with rows reads none of them."""

    count: int

    @property
    def shape(self) -> tuple[int, ...]:
        """One column."""
        return self.count, 1


def product_rows(
    rows: RowBlock, dense: DenseRows | Ones, columns_at_once: int, table: Table | None = None
) -> Tensor:
    """The product of sparse rows and a dense matrix, with at most so many dense rows in memory.

    The same bytes as the product in memory: sums go on from block to block in the order of the columns
    (:mod:`gcsr.products`). A ``table`` that is handed in saves allocating one.
    """
    if isinstance(dense, Ones):
        return rows.sums()
    total, width = dense.shape
    if total <= columns_at_once:
        return rows.times(torch.from_numpy(dense.read(0, total)))
    table = table or Table(columns_at_once, width)
    result = torch.zeros((rows.count, width))
    for start in range(0, total, columns_at_once):
        stop = min(total, start + columns_at_once)
        _read_into(table.place(stop - start), dense, start, stop)
        for first, last in rows.cuts():
            table.add_to(result[first:last], rows.part(first, last).between(start, stop))
    return result


def _read_into(place: Tensor, dense: DenseRows, start: int, stop: int) -> None:
    if isinstance(dense, ArrayFile):
        dense.read_into(place.numpy(), start)
    else:
        place.copy_(torch.from_numpy(dense.read(start, stop)))
