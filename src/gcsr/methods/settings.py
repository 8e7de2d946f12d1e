"""Settings as people write them: text to the type of a method's field."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from typing import Any

from gcsr.utils.errors import InputError


def value_of(key: str, text: str, kind: Any) -> Any:
    """What ``text`` means as a value of a field of that kind."""
    choices = kinds_of(kind)
    for choice in choices:
        parse = _PARSERS.get(choice, str)
        try:
            return parse(text)
        except ValueError:
            continue
    wanted = " or ".join(_NAMES.get(choice, str(choice)) for choice in choices)
    raise InputError(f"{key} must be {wanted}, got {text!r}.")


def kinds_of(kind: Any) -> tuple[Any, ...]:
    """The members of a union; otherwise the kind alone."""
    union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return typing.get_args(kind) if union else (kind,)


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer():
            raise
        return int(number)  # 1e3 is how many people write a thousand


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _nothing(text: str) -> None:
    if text.lower() != "none":
        raise ValueError(text)


_PARSERS: dict[Any, Callable[[str], Any]] = {
    int: _whole,
    float: float,
    bool: _truth,
    types.NoneType: _nothing,
}
_NAMES = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    types.NoneType: "none",
}
