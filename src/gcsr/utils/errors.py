"""The exception for invalid input, and functions that raise it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

_NUMBER = re.compile(r"\d+")


class InputError(ValueError):
    """Invalid input. The message is one sentence: the field, what is accepted and what was given.

    The command line prints the message and exits with code 2. Nothing was written.
    """


def require(condition: bool, message: str) -> None:
    """Raise :class:`InputError` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise InputError(message)


def require_one_of(field: str, value: object, accepted: Iterable[object]) -> None:
    """Raise :class:`InputError` unless ``value`` is among ``accepted``."""
    accepted = list(accepted)
    if value not in accepted:
        names = [str(name) for name in accepted]
        meant = suggestion(str(value), names, cutoff=0.75)
        raise InputError(f"{field} must be one of {', '.join(names)}, got {value!r}{meant}.")


def suggestion(given: str, accepted: Sequence[str], *, cutoff: float = 0.6) -> str:
    """`` (did you mean NAME?)`` if an accepted name is similar, otherwise an empty string."""
    # A name that differs in its number only is not similar: table9 is not a typo of table5.
    letters = _NUMBER.sub("0", given.lower())
    names = [
        name for name in accepted if _NUMBER.sub("0", name) != letters or name == given.lower()
    ]
    near = get_close_matches(given, names, n=1, cutoff=cutoff)
    near = near or get_close_matches(given.lower(), names, n=1, cutoff=cutoff)
    return f" (did you mean {near[0]}?)" if near else ""
