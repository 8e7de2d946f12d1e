"""Finished cells on disk: one JSON row per line, found again by key."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from gcsr.utils.errors import InputError
from gcsr.utils.locks import lock_byte, unlock_byte
from gcsr.utils.safe_io import reason

# -- Locks between processes that share a folder; they die with their process, whatever kills it -----


# The first bytes of the file stand for things of which there is one; the others for names.
_RESERVED = 1024
_HIGHEST = 2**62


class Locks:
    """Locks by name, each of them one byte of one file (POSIX record locks).

    The file stays empty and stays there: removing it would let two processes lock two files. The
    operating system drops the locks of a process that ends, so nothing can be left locked.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    @contextmanager
    def held(self, place: int) -> Iterator[None]:
        """Wait for one of the numbered locks, and hold it in the block."""
        self._lock(place, wait=True)
        try:
            yield
        finally:
            self._unlock(place)

    @contextmanager
    def claim(self, name: str) -> Iterator[bool]:
        """Whether the lock of that name could be had; if so it is held in the block."""
        digest = hashlib.sha256(name.encode()).digest()
        place = _RESERVED + int.from_bytes(digest[:8], "little") % (_HIGHEST - _RESERVED)
        mine = self._lock(place, wait=False)
        try:
            yield mine
        finally:
            if mine:
                self._unlock(place)

    def _lock(self, place: int, *, wait: bool) -> bool:
        try:
            # Never closed before the process ends: closing drops every lock of the process.
            if self._handle is None:
                self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            lock_byte(self._handle, place, wait=wait)
        except BlockingIOError:
            return False
        except OSError as error:
            raise InputError(f"{self._path}: cannot be locked ({error.strerror}).") from None
        return True

    def _unlock(self, place: int) -> None:
        if self._handle is not None:
            unlock_byte(self._handle, place)


# -- A row of a reproduction, read from a file that may come from anywhere ---------------------------


Row = dict[str, Any]
# No number of any table is near it, and every sum of such numbers is finite.
_LARGEST = 1e100


def parse_row(line: str) -> Row:
    """The row of a line; a line that is no row is a ``ValueError``.

    A row has a ``key``. Whatever else it has of the fields that tables, figures and pages use is of
    their kind; it may lack any of them.
    """
    try:
        row = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(row, dict) or not isinstance(row.get("key"), str):
        raise ValueError("no key")
    row["key"].encode()  # half a surrogate is a ValueError
    for name, fits in _KINDS.items():
        if name in row and not fits(row[name]):
            raise ValueError(f"{name} of another kind")
    return row


def _is_number(value: object) -> bool:
    # NaN is neither.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and -_LARGEST < value < _LARGEST  # type: ignore[operator]


def _is_number_or_nothing(value: object) -> bool:
    return value is None or _is_number(value)


def _is_count_or_nothing(value: object) -> bool:
    return value is None or (type(value) is int and 0 <= value < 2**31)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_values(value: object) -> bool:
    """One number, or none, per graph, by name."""
    return isinstance(value, dict) and all(
        isinstance(numbers, list) and all(map(_is_number_or_nothing, numbers))
        for numbers in value.values()
    )


def _is_drawn(value: object) -> bool:
    """Lists of numbers, matrices, or these by name."""
    if isinstance(value, dict):
        return all(map(_is_drawn, value.values()))
    if not isinstance(value, list):
        return False
    if all(map(_is_number_or_nothing, value)):
        return True
    return all(
        isinstance(row, list) and len(row) == len(value[0]) and all(map(_is_number_or_nothing, row))
        for row in value
    )


_KINDS: dict[str, Callable[[object], bool]] = {
    "method": _is_text,
    "dataset": _is_text,
    "nodes": _is_count_or_nothing,
    "graphs": _is_count_or_nothing,
    "runs": _is_count_or_nothing,
    "mean": _is_number_or_nothing,
    "std": _is_number_or_nothing,
    "values": _are_values,
    "drawn": lambda value: isinstance(value, dict) and _is_drawn(value),
    "leaks_test_labels": lambda value: isinstance(value, bool),
}


# Numbered locks.
_APPENDING, _WRITING_OUTPUTS = 0, 1


class Store:
    """Rows of a file to which any number of processes append.

    A row is there whole or not at all: one that was cut off by a crash has no end of line, is not
    read, and goes when the next one is appended. Rows have a ``key`` and, in ``cell``, the part of it
    that does not depend on the data.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._locks = Locks(path.with_suffix(".lock"))
        self._rows: dict[str, Row] = {}
        self._latest: dict[str, Row] = {}
        self.refresh()

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def get(self, key: str) -> Row | None:
        """The row of that key, if it was finished before."""
        return self._rows.get(key)

    def latest(self, cell: str) -> Row | None:
        """The newest row of these settings, whatever the data were."""
        return self._latest.get(cell)

    def refresh(self) -> None:
        """Read what other processes have added."""
        for row in _read(self.path):
            self._know(row)

    def append(self, row: Row) -> None:
        """Add a row; one of the same key that is there stays."""
        with self._locks.held(_APPENDING):
            self.refresh()
            if row["key"] in self._rows:
                return
            _append(self.path, (json.dumps(row, sort_keys=True) + "\n").encode())
            self._know(row)

    def claim(self, name: str) -> AbstractContextManager[bool]:
        """Whether this process may do the work of that name, and no other does it meanwhile."""
        return self._locks.claim(name)

    @contextmanager
    def outputs(self) -> Iterator[None]:
        """One process at a time writes tables and figures."""
        with self._locks.held(_WRITING_OUTPUTS):
            yield

    def _know(self, row: Row) -> None:
        if self._rows.setdefault(row["key"], row) is row:
            self._latest[str(row.get("cell", row["key"]))] = row


def _append(path: Path, line: bytes) -> None:
    try:
        with path.open("a+b") as stream:
            _drop_cut_off(stream.fileno())
            stream.write(line)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}).") from None


def _drop_cut_off(handle: int) -> None:
    """Cut the file after its last end of line; the caller holds the lock."""
    end = os.fstat(handle).st_size
    step = 1 << 16
    while end:
        start = max(0, end - step)
        found = os.pread(handle, end - start, start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    os.ftruncate(handle, end)


def _read(path: Path) -> list[Row]:
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({reason(error)}).") from None
    *lines, rest = text.split("\n")
    if not '{"'.startswith(rest[:2]):
        lines.append(rest)  # not the beginning of a row: the file is somebody else's
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(parse_row(line))
        except ValueError:
            raise InputError(
                f"{path}: line {number} is no row of a reproduction; move the file away or name"
                " another folder."
            ) from None
    return rows
