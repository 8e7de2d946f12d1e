"""Candidates of the automatic mode, as a file has them: `gcsr inspect` and pages list them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gcsr.utils.formatting import ROUNDS
from gcsr.utils.safe_io import is_number, part

# The automatic mode has two rounds; other files may have any number.
MOST_ROUNDS = 8


def ranked(automatic: dict[str, Any]) -> list[dict[str, Any]]:
    """Candidates: the chosen one, then those with scores of later rounds, then by score."""
    # Older files call them a race.
    found = objects(automatic, "candidates") or objects(automatic, "race")
    chosen, rounds = part(automatic, "chosen"), rounds_of(found)
    return sorted(
        found, key=lambda one: (is_chosen(one, chosen), standing(one, rounds)), reverse=True
    )


def rounds_of(compared: Sequence[dict[str, Any]]) -> list[str]:
    """Rounds that occur: known ones in their order, then others as they first occur."""
    scores = [scores_of(one) for one in compared]
    found = {name: None for one in scores for name, score in one.items() if score is not None}
    # Files sort their keys, so that the order of known rounds is not in them.
    known = [name for name in ROUNDS if name in found]
    return [*known, *(name for name in found if name not in ROUNDS)][:MOST_ROUNDS]


def scores_of(one: dict[str, Any]) -> dict[str, float | None]:
    """Validation accuracies of a candidate by round; ``None`` for what is not a number."""
    scores = part(one, "validation").items()
    return {name: float(score) if is_number(score) else None for name, score in scores}


def standing(one: dict[str, Any], rounds: Sequence[str]) -> tuple[float, ...]:
    """Scores from the last round to the first; what has none is below what has any."""
    scores = (scores_of(one).get(name) for name in reversed(rounds))
    return tuple(-math.inf if score is None else score for score in scores)


def is_chosen(one: dict[str, Any], chosen: dict[str, Any]) -> bool:
    """Whether a candidate is the chosen one."""
    return bool(chosen) and all(one.get(key) == chosen.get(key) for key in ("method", "settings"))


def objects(values: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects in a list of a file; nothing where there is no such list."""
    found = values.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
