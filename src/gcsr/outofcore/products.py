"""Rows of a sparse product whose dense side need not fit into memory.

:func:`product_rows` is the unit of all blocked work: a pure function of a slice of sparse rows and of
something that hands out rows of the dense side. It may run anywhere.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from gcsr.data.array_file import ArrayFile, ArrayWriter
from gcsr.data.stored_graph import SCRATCH_VARIABLE, OnDisk
from gcsr.utils.errors import InputError
from gcsr.utils.products import RowBlock, Table

# -- A matrix that is made and read by blocks -------------------------------------------------------


class Signal:
    """Rows are written in any order and then read by number."""

    def __init__(self, writer: ArrayWriter | np.ndarray) -> None:
        self._writer = writer

    def write(self, start: int, block: np.ndarray) -> None:
        """Rows from ``start`` on."""
        if isinstance(self._writer, np.ndarray):
            self._writer[start : start + block.shape[0]] = block
        else:
            self._writer.write(start, block)

    def rows(self) -> DenseRows:
        """What was written."""
        if isinstance(self._writer, np.ndarray):
            return ArrayRows(self._writer)
        return self._writer.finish(sync=False)


@contextmanager
def signal(disk: OnDisk, rows: int, width: int) -> Iterator[Signal]:
    """Room for a matrix: a quarter of the memory that blocks may take, or a file that goes again."""
    if rows * width * 4 <= disk.memory // 4:
        yield Signal(np.empty((rows, width), np.float32))
        return
    try:
        disk.scratch.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(dir=disk.scratch, prefix=".signal-") as folder,
            ArrayWriter(Path(folder) / "signal.npy", "<f4", width) as writer,
        ):
            yield Signal(writer)
    except OSError as error:
        raise InputError(
            f"{disk.scratch}: scores of {rows:,} nodes cannot be written ({error.strerror}); free some"
            f" disk or name another folder with {SCRATCH_VARIABLE}."
        ) from None


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
    (:mod:`gcsr.utils.products`). A ``table`` that is handed in saves allocating one.
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
