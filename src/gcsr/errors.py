"""The one exception users meet: a sentence that names the field, the value and what is accepted."""

from __future__ import annotations

from collections.abc import Iterable


class InputError(ValueError):
    """Something the caller gave cannot be used; the message is one sentence that helps.

    The command line prints the message and exits with code 2; nothing is lost or written.
    """


def require(condition: bool, sentence: str) -> None:
    """Raise :class:`InputError` with ``sentence`` unless ``condition`` holds."""
    if not condition:
        raise InputError(sentence)


def require_one_of(field: str, value: object, accepted: Iterable[object]) -> None:
    """Raise :class:`InputError` unless ``value`` is among ``accepted``."""
    accepted = list(accepted)
    if value not in accepted:
        names = ", ".join(str(name) for name in accepted)
        raise InputError(f"{field}: {value!r} is not known; accepted: {names}.")
