"""``--set key=value``: text to the type of the method's field."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

from gcsr.errors import InputError, require

# Options of their own, so that there is one way to say each.
SIZES = ("nodes", "ratio")


def parse_settings(method: str, assignments: Sequence[str]) -> dict[str, Any]:
    """Settings by field name; keys that the method does not have stay, for the library to refuse."""
    from gcsr.condense.registry import method as find_method  # noqa: PLC0415
    from gcsr.condense.registry import setting_name  # noqa: PLC0415 - torch takes a second to import

    kinds = typing.get_type_hints(find_method(method))
    settings: dict[str, Any] = {}
    for assignment in assignments:
        given, equals, text = (part.strip() for part in assignment.partition("="))
        require(
            bool(equals and given),
            f"--set: {assignment!r} is not accepted; key=value is (for example alpha=0.5).",
        )
        key = setting_name(given)
        require(key not in SIZES, f"--set: {given!r} is not accepted here; --{key} is.")
        require(key not in settings, f"--set: {given!r} is given twice.")
        settings[key] = _value(given, text, kinds[key]) if key in kinds else text
    return settings


def _value(key: str, text: str, kind: Any) -> Any:
    choices = typing.get_args(kind) if _is_union(kind) else (kind,)
    for choice in choices:
        parse = _PARSERS.get(choice, str)
        try:
            return parse(text)
        except ValueError:
            continue
    wanted = " or ".join(_NAMES.get(choice, str(choice)) for choice in choices)
    raise InputError(f"{key}: {text!r} is not accepted; {wanted} is.")


def _is_union(kind: Any) -> bool:
    return typing.get_origin(kind) in (typing.Union, types.UnionType)


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
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    types.NoneType: "none",
}
