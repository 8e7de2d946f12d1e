"""Validation of settings, before any data is read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from gcsr.utils.errors import InputError, require, suggestion


def require_setting(method: str, key: str, known: Iterable[str], *, given: str = "") -> None:
    """``key`` must be a setting of the method. ``given`` is how the user wrote it."""
    accepted = sorted(known)
    if key not in accepted:
        meant = suggestion(key, accepted)
        raise InputError(
            f"{given or key} is not a setting of {method}{meant}; accepted: {', '.join(accepted)}."
        )


def require_integer(name: str, value: object, least: int = 0, most: int | None = None) -> None:
    """``value`` must be an integer of at least ``least`` and at most ``most``."""
    fine = isinstance(value, int) and not isinstance(value, bool) and value >= least
    fine = fine and (most is None or value <= most)  # type: ignore[operator]
    upper = "" if most is None else f" and <= {most}"
    require(fine, f"{name} must be an integer >= {least}{upper}, got {value!r}.")


def whole_number(settings: object, *names: str, least: int = 0) -> None:
    """Each named field must be an integer of at least ``least``."""
    for name in names:
        require_integer(name, getattr(settings, name), least)


def truth_value(settings: object, *names: str) -> None:
    """Each named field must be true or false."""
    for name in names:
        value: Any = getattr(settings, name)
        require(isinstance(value, bool), f"{name} must be true or false, got {value!r}.")


def real_number(
    settings: object,
    *names: str,
    least: float = 0.0,
    most: float = math.inf,
    above: bool = False,
    below: bool = False,
) -> None:
    """Each named field must be a finite number in the range.

    ``above`` excludes the lower end, ``below`` the upper end.
    """
    bounds = f"{'>' if above else '>='} {least:g}"
    if math.isfinite(most):
        bounds += f" and {'<' if below else '<='} {most:g}"
    for name in names:
        value: Any = getattr(settings, name)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        fine = number and math.isfinite(value) and least <= value <= most
        fine = fine and not (above and value == least) and not (below and value == most)
        require(fine, f"{name} must be a number {bounds}, got {value!r}.")
