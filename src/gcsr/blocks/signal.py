"""A matrix that is made and read by blocks: in memory where it is small, else in a file for a while."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from gcsr.blocks.product import ArrayRows, DenseRows
from gcsr.errors import InputError
from gcsr.graph.array_file import ArrayWriter
from gcsr.graph.stored import SCRATCH_VARIABLE, OnDisk


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
