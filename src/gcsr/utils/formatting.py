"""Counts, scores, sizes and texts as they are shown."""

from __future__ import annotations

import math

# Rounds in which the automatic mode compares candidates, in their order; older files have the first
# three.
ROUNDS = ("first look", "closer look", "last word", "quick", "final")


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
