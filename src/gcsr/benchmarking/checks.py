"""Fields of a benchmark as people give them: what cannot be meant ends in one sentence."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from gcsr.methods.registry import method, setting_name
from gcsr.utils.errors import InputError, plain_number, require

# What a field with several values may have.
ACCEPTED = {
    "methods": "names or tables with a method",
    "nodes": "integers >= 1",
    "per_class": "integers >= 1",
    "ratio": "numbers > 0 and <= 1",
    "models": "names of test models",
    "more_models": "names of test models",
}


def as_tuple(name: str, given: Any) -> tuple[Any, ...]:
    """The values of a field; one alone needs no list."""
    given = plain_number(given)
    if isinstance(given, str | int | float | Mapping):
        return (given,)
    try:
        return tuple(map(plain_number, given))
    except TypeError:
        raise InputError(f"{name} must be {ACCEPTED[name]}, got {given!r}.") from None


def require_share(share: object) -> None:
    """A size as a share of the nodes."""
    fine = _is_number(share) and 0 < share <= 1  # type: ignore[operator]
    require(fine, f"ratio must be a number > 0 and <= 1, got {share!r}.")


def require_seconds(name: str, seconds: object) -> None:
    """A limit of time, if there is one."""
    fine = _is_number(seconds) and seconds > 0  # type: ignore[operator]
    require(seconds is None or fine, f"{name} must be a number > 0, got {seconds!r}.")


def require_path(name: str, given: object) -> None:
    """A file or folder."""
    require(isinstance(given, str | os.PathLike), f"{name} must be a path, got {given!r}.")


def require_entries(methods: tuple[Any, ...]) -> None:
    """Names, or tables with a method."""
    for entry in methods:
        table = isinstance(entry, Mapping) and "method" in entry and _has_names(entry)
        require(
            isinstance(entry, str) or table,
            f"methods must be {ACCEPTED['methods']}, got {entry!r}.",
        )


def require_tables(settings: Any) -> None:
    """A table of settings for each method that is named."""
    require(
        settings is None or isinstance(settings, Mapping),
        f"settings must be tables by method, got {settings!r}.",
    )
    for name, table in (settings or {}).items():
        method(name)
        require(
            isinstance(table, Mapping) and _has_names(table),
            f"settings must have a table for {name}, got {table!r}.",
        )


def plain_settings(settings: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Settings of one method as a cell has them."""
    for name in settings:
        require(
            setting_name(name) not in ("nodes", "ratio"),
            f"{name} cannot be given for one method; give nodes, per_class or ratio for all.",
        )
    return tuple((name, _plain(name, value)) for name, value in sorted(settings.items()))


def _plain(name: str, given: Any) -> Any:
    """Lists as tuples, and scalars of NumPy or torch as those of Python."""
    value = plain_number(given)
    if isinstance(value, list | tuple):
        return tuple(_plain(name, one) for one in value)
    require(
        value is None or isinstance(value, bool | int | float | str),
        f"{name} must be a number, a text, true or false, or a list of these, got {given!r}.",
    )
    return value


def _has_names(table: Mapping[Any, Any]) -> bool:
    return all(isinstance(name, str) for name in table)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
