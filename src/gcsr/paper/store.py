"""Finished cells on disk: one JSON row per line, found again by key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gcsr.errors import InputError
from gcsr.files import write_atomically

Row = dict[str, Any]


class Store:
    """Rows of a file that is complete after every row, however a run ends.

    Rows that another process adds meanwhile are kept.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows = _read(path)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def get(self, key: str) -> Row | None:
        """The row of that key, if it was finished before."""
        return self._rows.get(key)

    def append(self, row: Row) -> None:
        """Add a row that has a ``key``; one that is there stays."""
        self._rows = _read(self.path) | self._rows
        self._rows.setdefault(row["key"], row)
        text = "".join(json.dumps(each, sort_keys=True) + "\n" for each in self._rows.values())
        write_atomically(self.path, text.encode())


def _read(path: Path) -> dict[str, Row]:
    if not path.exists():
        return {}
    rows: dict[str, Row] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}).") from None
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            rows[row["key"]] = row
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{path}: line {number} is no row of a reproduction; move the file away or name"
                " another folder."
            ) from None
    return rows
