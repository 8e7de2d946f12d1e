"""Counts, scores, sizes and texts as they are shown."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from decimal import Decimal

from gcsr.utils.errors import InputError

# Rounds in which the automatic mode compares candidates, in their order; older files have the first
# three.
ROUNDS = ("first look", "closer look", "last word", "quick", "final")

# The name of graphs that were given none.
UNNAMED = "graph"


def nouns(count: float, noun: str) -> str:
    """``run`` for one, ``runs`` otherwise."""
    if count == 1:
        return noun
    return f"{noun}es" if noun.endswith("s") else f"{noun}s"


def counted(count: int, noun: str) -> str:
    """``1 run``, ``5 runs``."""
    return f"{count:,} {nouns(count, noun)}"


def accuracy(mean: float, plus_minus: float | None) -> str:
    """``81.3 ± 0.4 %``; of one score ``81.3 %``."""
    return f"{mean:.1f} %" if plus_minus is None else f"{mean:.1f} ± {plus_minus:.1f} %"


def byte_count(count: float | None) -> str:
    """``1.2 MB``: bytes in decimal units; a dash where there is no number."""
    if count is None or not math.isfinite(count):
        return "–"
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def printable(value: object) -> str:
    """Text from a file of unknown origin, without control characters."""
    return "".join(
        c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}"
        for c in str(value)
    )


_UNITS = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**i for i, prefix in enumerate("kmgt", 1)},
    **{f"{prefix}ib": 1024**i for i, prefix in enumerate("kmgt", 1)},
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?(?:e\+?\d{1,2})?)\s*([kmgt]?i?b)?", re.ASCII)


def parse_bytes(option: str, text: str) -> int:
    """``500MB``, ``2GiB``, ``1e9`` or plain bytes."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is not None and (match[2] or "") in _UNITS:
        size = Decimal(match[1]) * _UNITS[match[2] or ""]
        # Half a byte is a forgotten unit.
        if (match[2] or size == int(size)) and size < 2**63:
            return int(size)
    raise InputError(f"{option} must be a size such as 500MB, 2GiB or 1e9 (bytes), got {text!r}.")


def text_of(value: object) -> str:
    """A value as it is written on the command line, exactly."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value)


def command_line(*words: object, **options: object) -> str:
    """A command as it is typed.

    Options that are ``None`` or false are left out, true ones have no value. A mapping becomes one
    option with ``NAME=VALUE`` for each of its items.
    """
    parts = [str(word) for word in words]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, Mapping):
            for key, one in value.items():
                parts += [option, f"{key}={text_of(one)}"]
        elif value is not None and value is not False:
            parts += [option] if value is True else [option, text_of(value)]
    return shlex.join(parts)
