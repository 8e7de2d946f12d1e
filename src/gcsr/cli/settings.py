"""``--set key=value``: text to the type of the method's field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gcsr.errors import require

# Options of their own, so that there is one way to say each.
SIZES = ("nodes", "ratio")


def parse_settings(method: str, assignments: Sequence[str]) -> dict[str, Any]:
    """Settings by field name; keys that the method does not have stay, for the library to refuse."""
    from gcsr.condense.registry import method as find_method  # noqa: PLC0415
    from gcsr.condense.registry import setting_kinds, setting_name  # noqa: PLC0415 - torch takes a second to import
    from gcsr.condense.texts import value_of  # noqa: PLC0415

    kinds = setting_kinds(find_method(method))
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
        settings[key] = value_of(given, text, kinds[key]) if key in kinds else text
    return settings
