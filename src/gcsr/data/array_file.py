"""Plain ``.npy`` files, read and written by blocks of rows.

Large files are read rather than mapped: pages of a mapping count as memory of the process.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from gcsr.utils.errors import InputError, require
from gcsr.utils.safe_io import accessing, naming, parsing, reason

# The length of every header that is written: it is written again once the shape is known.
HEADER_BYTES = 128
# Bytes read at once.
WALK_BYTES = 2**25
# Rows are read one by one where fewer than one in this many pages is wanted.
PAGE_BYTES, SPARSE_PAGES = 4096, 16
DTYPES = ("<f4", "<i4", "<i8")
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def npy_header(stream: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an npy file of ``size`` bytes; other files are a ``ValueError``.

    The header must describe exactly the bytes that follow.
    """
    magic = np.lib.format.read_magic(stream)
    if magic not in _HEADERS:
        raise ValueError(f"format {magic[0]}.{magic[1]}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the text in the header
        shape, fortran, dtype = _HEADERS[magic](stream)
    if dtype.hasobject:
        raise InputError(
            "holds a pickled object, which could run code; save plain arrays of numbers"
            " (array.astype('float32') makes one of objects)."
        )
    if dtype.names is not None or dtype.subdtype is not None or not dtype.itemsize:
        raise ValueError(f"values of type {reason(dtype)}")
    if any(type(length) is not int or length < 0 for length in shape):
        raise ValueError("an invalid shape")
    if math.prod(shape) * dtype.itemsize != size - stream.tell():
        raise ValueError("a shape that does not match its values")
    return shape, fortran, dtype


@dataclass(frozen=True)
class ArrayFile:
    """Rows of a list or a matrix in a ``.npy`` file."""

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype
    offset: int

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read and check the header; no row is read."""
        require(path.is_file(), f"{path}: no such file.")  # opening a pipe would block
        with _opened(path) as stream, naming(path), parsing("not a readable npy file"):
            shape, fortran, dtype = npy_header(stream, path.stat().st_size)
            offset = stream.tell()
        require(
            dtype.str in DTYPES and not fortran and 1 <= len(shape) <= 2,
            f"{path}: must have rows of float32, int32 or int64, got {dtype} of shape {shape}.",
        )
        return cls(path, shape, dtype, offset)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return self.rows * self.row_bytes

    def read(
        self, start: int = 0, stop: int | None = None, columns: np.ndarray | None = None
    ) -> np.ndarray:
        """Rows ``start`` up to, not including, ``stop``; some columns, or all."""
        stop = self.rows if stop is None else stop
        out = np.empty((stop - start, *self.shape[1:]), self.dtype)
        self.read_into(out, start)
        return out if columns is None else out[:, columns]

    def map(self) -> np.ndarray:
        """All rows, mapped into memory without a copy."""
        try:
            # Copy on write: torch takes no read-only arrays.
            return np.memmap(self.path, self.dtype, "c", self.offset, self.shape)
        except (OSError, ValueError) as error:
            raise InputError(f"{self.path}: cannot be mapped ({error}).") from None

    def forget(self) -> None:
        """Drop the file from the page cache of the system."""
        if not hasattr(os, "posix_fadvise"):
            return
        with suppress(OSError), self.path.open("rb", buffering=0) as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def read_into(self, out: np.ndarray, start: int) -> None:
        """Fill ``out`` with the rows that begin at ``start``."""
        with _opened(self.path) as stream:
            self._fill(stream, out, start)

    def take(self, ids: np.ndarray) -> np.ndarray:
        """Some rows, in the order asked for."""
        ids = np.asarray(ids)
        out = np.empty((ids.size, *self.shape[1:]), self.dtype)
        order = None if bool((ids[1:] >= ids[:-1]).all()) else np.argsort(ids, kind="stable")
        wanted = ids if order is None else ids[order]
        per_window = max(1, WALK_BYTES // self.row_bytes)
        one_by_one = max(1, WALK_BYTES // (PAGE_BYTES * SPARSE_PAGES))
        at = 0
        with _opened(self.path) as stream:
            while at < wanted.size:
                first = int(wanted[at])
                end = int(np.searchsorted(wanted, first + per_window, "left"))
                places = slice(at, end) if order is None else order[at:end]
                if end - at < one_by_one:
                    found = np.empty((end - at, *self.shape[1:]), self.dtype)
                    for i, row in enumerate(wanted[at:end].tolist()):
                        self._fill(stream, found[i : i + 1], row)
                else:
                    last = int(wanted[end - 1])
                    window = np.empty((last + 1 - first, *self.shape[1:]), self.dtype)
                    self._fill(stream, window, first)
                    found = window[wanted[at:end] - first]
                out[places] = found
                at = end
        return out

    def blocks(self) -> Iterator[np.ndarray]:
        """All rows, in blocks of moderate size."""
        step = max(1, WALK_BYTES // max(1, self.row_bytes))
        for start in range(0, self.rows, step):
            yield self.read(start, min(self.rows, start + step))

    def _fill(self, stream: FileIO, out: np.ndarray, start: int) -> None:
        if not out.size:
            return
        view = memoryview(out).cast("B")  # type: ignore[arg-type]
        stream.seek(self.offset + start * self.row_bytes)
        while view:
            got = stream.readinto(view[: 2**30])
            require(bool(got), f"{self.path}: ends before row {start + out.shape[0]}.")
            view = view[got:]


@contextmanager
def _opened(path: Path) -> Iterator[FileIO]:
    with accessing(f"{path}: cannot be read"), path.open("rb", buffering=0) as stream:
        yield stream


class ArrayWriter:
    """Writes a ``.npy`` file of known width by rows."""

    def __init__(self, path: Path, dtype: str, width: int | None = None, *, rows: int = 0) -> None:
        self.path, self.dtype, self.width = path, np.dtype(dtype), width
        self.rows = rows
        path.touch(exist_ok=True)
        self._stream = path.open("r+b", buffering=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def append(self, block: np.ndarray) -> None:
        """Rows after the last one."""
        block = np.ascontiguousarray(block, self.dtype)
        if not block.size:
            return
        view = memoryview(block).cast("B")  # type: ignore[arg-type]
        row = self.dtype.itemsize * (self.width or 1)
        self._stream.seek(HEADER_BYTES + self.rows * row)
        while view:
            view = view[self._stream.write(view[: 2**30]) :]
        self.rows += block.shape[0]

    def sync(self) -> None:
        """Flush to the disk."""
        os.fsync(self._stream.fileno())

    def finish(self, *, sync: bool = True) -> ArrayFile:
        """Write the header for the rows there are."""
        shape = (self.rows,) if self.width is None else (self.rows, self.width)
        self._stream.seek(0)
        text = repr({"descr": self.dtype.str, "fortran_order": False, "shape": shape}).encode()
        body = text.ljust(HEADER_BYTES - 11) + b"\n"
        self._stream.write(b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body)
        self._stream.truncate(HEADER_BYTES + math.prod(shape) * self.dtype.itemsize)
        if sync:
            self.sync()
        return ArrayFile(self.path, shape, self.dtype, HEADER_BYTES)
