"""Arrays on disk, read and written by blocks of rows; nothing of them stays in memory.

Files are plain ``.npy``. Large ones are read rather than mapped: pages of a mapping count
as memory of the process for as long as it lasts, pages that were read belong to the system.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from gcsr.utils.errors import InputError, require

# Every header that is written has this length, so that it can be written again once the shape is known.
HEADER_BYTES = 128
# Bytes read at once where a file is walked through.
WALK_BYTES = 2**25
# Rows are read one by one where fewer than one in this many pages is wanted, else with all between.
PAGE_BYTES, SPARSE_PAGES = 4096, 16
DTYPES = ("<f4", "<i4", "<i8")


@dataclass(frozen=True)
class ArrayFile:
    """Rows of a list or a matrix in a ``.npy`` file."""

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype
    offset: int

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the header and hold it against the size of the file; no row is read."""
        # A pipe of that name would be waited for without end.
        require(path.is_file(), f"{path}: no such file.")
        try:
            size = path.stat().st_size
            with path.open("rb") as stream:
                version = np.lib.format.read_magic(stream)
                require(version in ((1, 0), (2, 0)), f"{path}: npy version {version} is not read.")
                head = (
                    np.lib.format.read_array_header_1_0
                    if version == (1, 0)
                    else np.lib.format.read_array_header_2_0
                )
                shape, fortran, dtype = head(stream)
                offset = stream.tell()
        except InputError:
            raise
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
        except Exception as error:  # whatever a hostile header makes numpy's parser raise
            raise InputError(f"{path}: not a readable npy file ({error}).") from None
        require(
            dtype.str in DTYPES and not fortran and 1 <= len(shape) <= 2,
            f"{path}: holds {dtype} of shape {shape}; rows of float32, int32 or int64 are read.",
        )
        expected = offset + math.prod(shape) * dtype.itemsize
        require(
            expected == size,
            f"{path}: has {size} bytes, but its header promises {expected} of them.",
        )
        return cls(path, tuple(int(n) for n in shape), dtype, offset)

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

    def read(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Rows ``start`` up to, not including, ``stop``."""
        stop = self.rows if stop is None else stop
        out = np.empty((stop - start, *self.shape[1:]), self.dtype)
        self.read_into(out, start)
        return out

    def map(self) -> np.ndarray:
        """All rows, mapped: no copy, but what is touched counts as memory until the array goes."""
        try:
            # Private: whoever writes to it writes to memory; torch takes no read-only arrays.
            return np.memmap(self.path, self.dtype, "c", self.offset, self.shape)
        except (OSError, ValueError) as error:
            raise InputError(f"{self.path}: cannot be mapped ({error}).") from None

    def forget(self) -> None:
        """Let the system use the memory that it keeps the file in for something else."""
        if not hasattr(os, "posix_fadvise"):
            return
        # A file that is gone is forgotten.
        with suppress(OSError), self.path.open("rb", buffering=0) as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def read_into(self, out: np.ndarray, start: int) -> None:
        """Fill ``out`` with the rows that begin at ``start``."""
        try:
            with self.path.open("rb", buffering=0) as stream:
                self._fill(stream.fileno(), out, start)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read ({error.strerror}).") from None

    def take(self, ids: np.ndarray) -> np.ndarray:
        """Some rows, in the order asked for."""
        ids = np.asarray(ids)
        out = np.empty((ids.size, *self.shape[1:]), self.dtype)
        order = None if bool((ids[1:] >= ids[:-1]).all()) else np.argsort(ids, kind="stable")
        wanted = ids if order is None else ids[order]
        per_window = max(1, WALK_BYTES // self.row_bytes)
        one_by_one = max(1, WALK_BYTES // (PAGE_BYTES * SPARSE_PAGES))
        try:
            with self.path.open("rb", buffering=0) as stream:
                at = 0
                while at < wanted.size:
                    first = int(wanted[at])
                    end = int(np.searchsorted(wanted, first + per_window, "left"))
                    places = slice(at, end) if order is None else order[at:end]
                    if end - at < one_by_one:
                        found = np.empty((end - at, *self.shape[1:]), self.dtype)
                        for i, row in enumerate(wanted[at:end].tolist()):
                            self._fill(stream.fileno(), found[i : i + 1], row)
                    else:
                        last = int(wanted[end - 1])
                        window = np.empty((last + 1 - first, *self.shape[1:]), self.dtype)
                        self._fill(stream.fileno(), window, first)
                        found = window[wanted[at:end] - first]
                    out[places] = found
                    at = end
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read ({error.strerror}).") from None
        return out

    def blocks(self) -> Iterator[np.ndarray]:
        """All rows, in blocks of moderate size."""
        step = max(1, WALK_BYTES // max(1, self.row_bytes))
        for start in range(0, self.rows, step):
            yield self.read(start, min(self.rows, start + step))

    def sha256(self) -> str:
        """Of the whole file, as ``sha256sum`` prints it."""
        digest = hashlib.sha256()
        with self.path.open("rb", buffering=0) as stream:
            while block := stream.read(WALK_BYTES):
                digest.update(block)
        return digest.hexdigest()

    def _fill(self, handle: int, out: np.ndarray, start: int) -> None:
        if not out.size:
            return
        _require_positions(self.path)
        view = memoryview(out).cast("B")  # type: ignore[arg-type]
        at = self.offset + start * self.row_bytes
        while view:
            got = os.preadv(handle, [view[: 2**30]], at)
            require(got > 0, f"{self.path}: ends before row {start + out.shape[0]}.")
            view, at = view[got:], at + got


class ArrayWriter:
    """A ``.npy`` file of known width that is written by rows, in any order, and grows as it must."""

    def __init__(self, path: Path, dtype: str, width: int | None = None) -> None:
        self.path, self.dtype, self.width = path, np.dtype(dtype), width
        self.rows = 0
        _require_positions(path)
        flags = os.O_RDWR | os.O_CREAT
        self._handle = os.open(path, flags, 0o666)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def append(self, block: np.ndarray) -> None:
        """Rows after the last one."""
        self.write(self.rows, block)

    def write(self, start: int, block: np.ndarray) -> None:
        """Rows from ``start`` on."""
        block = np.ascontiguousarray(block, self.dtype)
        if not block.size:
            return
        view = memoryview(block).cast("B")  # type: ignore[arg-type]
        row = self.dtype.itemsize * (self.width or 1)
        at = HEADER_BYTES + start * row
        while view:
            put = os.pwrite(self._handle, view[: 2**30], at)
            view, at = view[put:], at + put
        self.rows = max(self.rows, start + block.shape[0])

    def sync(self) -> None:
        """What was written survives whatever comes."""
        os.fsync(self._handle)

    def finish(self, *, sync: bool = True) -> ArrayFile:
        """Write the header for the rows there are."""
        shape = (self.rows,) if self.width is None else (self.rows, self.width)
        os.pwrite(self._handle, _header(shape, self.dtype), 0)
        os.ftruncate(self._handle, HEADER_BYTES + math.prod(shape) * self.dtype.itemsize)
        if sync:
            self.sync()
        return ArrayFile(self.path, shape, self.dtype, HEADER_BYTES)


def _require_positions(path: Path) -> None:
    require(
        hasattr(os, "preadv") and hasattr(os, "pwrite"),
        f"{path}: this system (Windows?) cannot read and write files by position, which graph folders"
        " and features on disk need.",
    )


def _header(shape: tuple[int, ...], dtype: np.dtype) -> bytes:
    text = repr({"descr": dtype.str, "fortran_order": False, "shape": shape}).encode()
    body = text.ljust(HEADER_BYTES - 11) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body
