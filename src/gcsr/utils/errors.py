"""The exception for invalid input, and functions that raise it."""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, partial
from types import NoneType
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

_NUMBER = re.compile(r"\d+")


class InputError(ValueError):
    """Invalid input. The message is one sentence: the field, what is accepted and what was given.

    The command line prints the message and exits with code 2. Nothing was written.
    """


class InputWarning(UserWarning):
    """Input that is used in part, or with a choice made for the user. The message is one sentence."""


def warn_user(sentence: str) -> None:
    """Issue an :class:`InputWarning` for the line outside this package that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "gcsr":
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, InputWarning, stacklevel=level)


def require(condition: bool, message: str) -> None:
    """Raise :class:`InputError` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise InputError(message)


def require_one_of(field: str, value: object, accepted: Iterable[object]) -> None:
    """Raise :class:`InputError` unless ``value`` is among ``accepted``."""
    accepted = list(accepted)
    if value not in accepted:
        names = [str(name) for name in accepted]
        meant = suggestion(str(value), names, cutoff=0.66)
        raise InputError(f"{field} must be one of {', '.join(names)}, got {value!r}{meant}.")


def suggestion(given: str, accepted: Sequence[str], *, cutoff: float = 0.6) -> str:
    """`` (did you mean NAME?)`` if an accepted name is similar, otherwise an empty string."""
    # A name that differs in its number only is not similar: table9 is not a typo of table5.
    letters = _NUMBER.sub("0", given.lower())
    names = [
        name for name in accepted if _NUMBER.sub("0", name) != letters or name == given.lower()
    ]
    for word in (given, given.lower()):
        # Similar names come first, and of those with equally few edits the first is taken.
        near = get_close_matches(word, names, n=max(1, len(names)), cutoff=cutoff)
        meant = min(near, key=partial(_edits, word), default="")
        if meant and _edits(word, meant) <= max(1, len(word) // 2):
            return f" (did you mean {meant}?)"
    longer = [name for name in names if name.startswith(f"{given}_")]
    return f" (did you mean {longer[0]}?)" if len(longer) == 1 else ""


def _edits(one: str, other: str) -> int:
    """Letters to insert, remove, replace or swap with their neighbor (optimal string alignment)."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            row.append(min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != wanted)))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                row[j] = min(row[j], before[j - 2] + 1)
        before, last = last, row
    return last[-1]


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


def plain_number(value: Any) -> Any:
    """A scalar of NumPy or torch as one of Python, as in files; anything else as it is."""
    return value.item() if getattr(value, "shape", None) == () else value


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


@dataclass(frozen=True)
class Bounds:
    """In the annotation of a number: what :func:`real_number` accepts."""

    least: float = 0.0
    most: float = math.inf
    above: bool = False
    below: bool = False


Whole = Annotated[int, Bounds()]
Count = Annotated[int, Bounds(least=1)]
Weight = Annotated[float, Bounds()]
Rate = Annotated[float, Bounds(above=True)]
Share = Annotated[float, Bounds(most=1.0)]
PositiveShare = Annotated[float, Bounds(most=1.0, above=True)]


@cache
def _annotations(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def check_fields(settings: object) -> None:
    """Check a frozen dataclass by its annotations: :class:`Bounds`, literals and truth values.

    Scalars of NumPy or torch are replaced by those of Python.
    """
    annotations = _annotations(cast("Any", type(settings)))
    for name, given in list(vars(settings).items()):
        value = plain_number(given)
        object.__setattr__(settings, name, value)
        kind = annotations[name]
        if NoneType in get_args(kind):
            if value is None:
                continue
            kind = get_args(kind)[0]
        if kind is bool:
            require(isinstance(value, bool), f"{name} must be true or false, got {value!r}.")
        elif get_origin(kind) is Literal:
            require_one_of(name, value, get_args(kind))
        elif get_origin(kind) is Annotated and get_args(kind)[0] is int:
            require_integer(name, value, int(get_args(kind)[1].least))
        elif get_origin(kind) is Annotated:
            real_number(settings, name, **vars(get_args(kind)[1]))
