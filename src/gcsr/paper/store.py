"""Finished cells on disk: one JSON row per line, found again by key."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from gcsr.errors import InputError
from gcsr.paper.locks import Locks
from gcsr.paper.rows import Row, parse_row
from gcsr.untrusted import reason

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
