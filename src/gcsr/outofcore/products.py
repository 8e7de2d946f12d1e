"""Products of sparse rows and a dense matrix that need not fit into memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gcsr.data.array_file import ArrayFile, ArrayWriter
from gcsr.data.stored_graph import SCRATCH_VARIABLE, OnDisk
from gcsr.data.stored_matrix import StoredFeatures
from gcsr.utils.products import PartialSums, RowBlock
from gcsr.utils.safe_io import accessing


@dataclass(frozen=True)
class _ArrayRows:
    """Rows in memory, with the interface of :class:`~gcsr.data.array_file.ArrayFile`."""

    array: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    def read(self, start: int, stop: int) -> np.ndarray:
        return self.array[start:stop]

    def take(self, ids: np.ndarray) -> np.ndarray:
        return np.asarray(self.array[ids])

    def map(self) -> np.ndarray:
        return self.array


DenseRows = ArrayFile | _ArrayRows | StoredFeatures


@dataclass(frozen=True)
class Ones:
    """A column of ones, which is never stored."""

    count: int

    @property
    def shape(self) -> tuple[int, ...]:
        """One column."""
        return self.count, 1


class DenseSide:
    """The dense side of products, at most ``columns`` of its rows in memory.

    Products are the same bytes as in memory: sums continue from block to block in the order of the
    columns (:mod:`gcsr.utils.products`).
    """

    def __init__(self, dense: DenseRows | Ones, columns: int) -> None:
        self._dense, self._columns = dense, columns
        # All rows, or room for some of them.
        self._held: Tensor | PartialSums = PartialSums(0, 0)
        if not isinstance(dense, Ones):
            fits = dense.shape[0] <= columns
            self._held = (
                torch.from_numpy(dense.map()) if fits else PartialSums(columns, dense.shape[1])
            )

    def times(self, rows: RowBlock) -> Tensor:
        """The product of sparse rows and this matrix."""
        dense, held = self._dense, self._held
        if isinstance(dense, Ones):
            return rows.sums()
        if isinstance(held, Tensor):
            return rows.times(held)
        total, width = dense.shape
        result = torch.zeros((rows.count, width))
        for start in range(0, total, self._columns):
            stop = min(total, start + self._columns)
            place = held.place(stop - start)
            if isinstance(dense, ArrayFile):
                dense.read_into(place.numpy(), start)
            else:
                place.copy_(torch.from_numpy(dense.read(start, stop)))
            for first, last in rows.cuts():
                held.add_to(result[first:last], rows.part(first, last).between(start, stop))
        return result


@contextmanager
def stored(disk: OnDisk, rows: int, width: int, parts: Iterable[np.ndarray]) -> Iterator[DenseRows]:
    """A matrix from parts in order, in a quarter of the memory for blocks or in a temporary file."""
    if rows * width * 4 <= disk.memory // 4:
        array, done = np.empty((rows, width), np.float32), 0
        for part in parts:
            array[done : done + part.shape[0]] = part
            done += part.shape[0]
        yield _ArrayRows(array)
        return
    refusal = f"{disk.scratch}: scores of {rows:,} nodes cannot be written"
    advice = f"; free some disk or name another folder with {SCRATCH_VARIABLE}"
    with accessing(refusal, advice):
        disk.scratch.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(dir=disk.scratch, prefix=".signal-") as folder,
            ArrayWriter(Path(folder) / "signal.npy", "<f4", width) as writer,
        ):
            for part in parts:
                writer.append(part)
            yield writer.finish(sync=False)
