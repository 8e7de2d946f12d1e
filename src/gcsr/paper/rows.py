"""A row of a reproduction, read from a file that may come from anywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

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
