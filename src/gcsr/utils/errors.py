"""The one exception users meet: a sentence that names the field, the value and what is accepted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

# How alike a name must be to one that is accepted to be taken for a slip.
ALIKE = 0.75
NUMBER = re.compile(r"\d+")


class InputError(ValueError):
    """Something the caller gave cannot be used; the message is one sentence that helps.

    The command line prints the message and exits with code 2; nothing is lost or written.
    """


def require(condition: bool, sentence: str) -> None:
    """Raise :class:`InputError` with ``sentence`` unless ``condition`` holds."""
    if not condition:
        raise InputError(sentence)


def require_one_of(field: str, value: object, accepted: Iterable[object]) -> None:
    """Raise :class:`InputError` unless ``value`` is among ``accepted``; a slip is guessed at."""
    accepted = list(accepted)
    if value not in accepted:
        names = [str(name) for name in accepted]
        meant = suggestion(str(value), names, alike=ALIKE)
        raise InputError(f"{field}: {value!r} is not known{meant}; accepted: {', '.join(names)}.")


def suggestion(given: str, accepted: Sequence[str], *, alike: float = 0.6) -> str:
    """What was meant, if one is near; it stands before the names that are accepted."""
    # Another number is no slip: who writes table9 does not mean table5.
    letters = NUMBER.sub("0", given.lower())
    names = [name for name in accepted if NUMBER.sub("0", name) != letters or name == given.lower()]
    near = get_close_matches(given, names, n=1, cutoff=alike)
    near = near or get_close_matches(given.lower(), names, n=1, cutoff=alike)
    return f" (did you mean {near[0]}?)" if near else ""
