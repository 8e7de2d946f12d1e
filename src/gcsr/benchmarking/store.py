"""Finished cells on disk: one JSON row per line, found again by key."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from gcsr.utils.errors import InputError
from gcsr.utils.safe_io import accessing, is_number, lock_byte, reason, unlock_byte

Row = dict[str, Any]
# Larger than any number of a table; every sum of such numbers is finite.
_LARGEST = 1e100
# Bytes of the lock file: two fixed ones, those below _RESERVED are free, the others are for names.
_APPENDING, _WRITING_OUTPUTS, _RESERVED, _HIGHEST = 0, 1, 1024, 2**62


class Store:
    """Rows of a file to which any number of processes append.

    A row is there whole or not at all: one that was cut off by a crash has no end of line, is not
    read, and is removed when the next one is appended. Rows have a ``key`` and, in ``cell``, the part
    of it that does not depend on the data.

    Locks are bytes of a second file (POSIX record locks). The operating system drops the locks of a
    process that ends. The lock file stays: removing it would let two processes lock two files.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock_path = path.with_suffix(".lock")
        self._lock_file: int | None = None
        self._rows: dict[str, Row] = {}
        self._latest: dict[str, Row] = {}
        self.refresh()

    def __reduce__(self) -> tuple[type[Store], tuple[Path]]:
        return Store, (self.path,)  # another process opens the file

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
            self._add(row)

    def append(self, row: Row) -> None:
        """Add a row; an existing one of the same key stays, unless only that one failed."""
        with self._locked(_APPENDING, wait=True):
            self.refresh()
            known = self._rows.get(row["key"])
            if known is not None and (failed_row(row) or not failed_row(known)):
                return
            with accessing(f"{self.path}: cannot be written"), self.path.open("a+b") as stream:
                stream.seek(0)
                stream.truncate(stream.read().rfind(b"\n") + 1)  # drop a row that was cut off
                stream.write((json.dumps(row, sort_keys=True) + "\n").encode())
                stream.flush()
                os.fsync(stream.fileno())
            self._add(row)

    def claim(self, name: str) -> AbstractContextManager[bool]:
        """Whether this process may do the work of that name; no other does it in the block."""
        digest = hashlib.sha256(name.encode()).digest()
        place = _RESERVED + int.from_bytes(digest[:8], "little") % (_HIGHEST - _RESERVED)
        return self._locked(place, wait=False)

    def outputs(self) -> AbstractContextManager[bool]:
        """One process at a time writes tables and figures."""
        return self._locked(_WRITING_OUTPUTS, wait=True)

    @contextmanager
    def _locked(self, place: int, *, wait: bool) -> Iterator[bool]:
        """Hold the lock of one byte in the block; ``False`` where another process has it."""
        try:
            # Never closed before the process ends: closing drops every lock of the process.
            if self._lock_file is None:
                self._lock_file = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o666)
            lock_byte(self._lock_file, place, wait=wait)
        except BlockingIOError:
            yield False
            return
        except OSError as error:
            raise InputError(f"{self._lock_path}: cannot be locked ({error.strerror}).") from None
        try:
            yield True
        finally:
            unlock_byte(self._lock_file, place)

    def _add(self, row: Row) -> None:
        known = self._rows.get(row["key"])
        if known is None or (failed_row(known) and not failed_row(row)):
            self._rows[row["key"]] = row
            self._latest[str(row.get("cell", row["key"]))] = row


def prepare_folder(field: str, folder: Path) -> None:
    """Make a folder now: a failure after hours of computing would be too late."""
    with accessing(f"{field}: {folder} cannot be made a folder"):
        folder.mkdir(parents=True, exist_ok=True)


def prepare_writable(field: str, folder: Path) -> None:
    """Make a folder, and a file in it that is removed at once."""
    prepare_folder(field, folder)
    with accessing(f"{field}: {folder} cannot be written"), tempfile.TemporaryFile(dir=folder):
        pass


def failed_row(row: Row) -> bool:
    """Whether a row has the reason of a failure instead of numbers."""
    return row.get("state") == "failed"


def _read(path: Path) -> list[Row]:
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({reason(error)}).") from None
    *lines, rest = text.split("\n")
    if not '{"'.startswith(rest[:2]):
        lines.append(rest)  # not the beginning of a row: another kind of file
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(_parse(line))
        except ValueError:
            raise InputError(
                f"{path}: line {number} is no row of a benchmark or a reproduction; move the"
                " file away, or name another file or folder."
            ) from None
    return rows


def _parse(line: str) -> Row:
    """The row of a line; other text is a ``ValueError``.

    A row has a ``key``. It may lack any of the fields that tables, figures and pages use, but those
    that it has are of the right type.
    """
    try:
        row = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(row, dict) or not isinstance(row.get("key"), str):
        raise ValueError("no key")
    row["key"].encode()  # half a surrogate is a ValueError
    for name, fits in _TYPES.items():
        if name in row and not fits(row[name]):
            raise ValueError(f"{name} has a wrong type")
    return row


def _is_number(value: object) -> bool:
    """A number that is neither NaN nor huge, or nothing."""
    return value is None or (is_number(value) and abs(value) < _LARGEST)  # type: ignore[arg-type]


def _is_amount(value: object) -> bool:
    return _is_number(value) and (value is None or value >= 0)  # type: ignore[operator]


def _is_recipe(value: object) -> bool:
    return isinstance(value, dict) and _is_count(value.get("epochs"))


def _is_count(value: object) -> bool:
    return value is None or (type(value) is int and 0 <= value < 2**31)


def _are_numbers(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_number, value))


def _is_drawn(value: object) -> bool:
    """Lists of numbers, matrices, or these by name."""
    if isinstance(value, dict):
        return all(map(_is_drawn, value.values()))
    if not isinstance(value, list):
        return False
    return _are_numbers(value) or all(
        _are_numbers(row) and len(row) == len(value[0]) for row in value
    )


_TEXTS = ("method", "dataset", "label", "test", "state", "reason")
_TYPES: dict[str, Callable[[object], bool]] = {
    **dict.fromkeys(_TEXTS, lambda value: isinstance(value, str)),
    **dict.fromkeys(("nodes", "graphs", "runs", "classes"), _is_count),
    **dict.fromkeys(("scores", "validation"), _are_numbers),
    **dict.fromkeys(("mean", "std"), _is_number),
    **dict.fromkeys(("bytes", "condense_seconds", "evaluate_seconds"), _is_amount),
    "recipe": _is_recipe,
    **dict.fromkeys(("given", "revisions"), lambda value: isinstance(value, dict)),
    "values": lambda value: isinstance(value, dict) and all(map(_are_numbers, value.values())),
    "drawn": lambda value: isinstance(value, dict) and _is_drawn(value),
    "leaks_test_labels": lambda value: isinstance(value, bool),
}
