"""Counts and scores as people say them."""

from __future__ import annotations

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


def deviation(std: float, scores: int, digits: int = 1) -> str:
    """The deviation of so many scores; one score has none."""
    return f"± {std:.{digits}f}" if scores > 1 else ""


def accuracy(mean: float, std: float, scores: int) -> str:
    """``81.3 ± 0.4 %``; of one score ``81.3 %``."""
    return " ".join(filter(None, (f"{mean:.1f}", deviation(std, scores), "%")))
