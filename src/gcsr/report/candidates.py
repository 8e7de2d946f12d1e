"""How the automatic mode chose: its candidates, how they validated, and its plan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from gcsr.report.charts import data_table
from gcsr.report.evidence import Evidence
from gcsr.report.html import joined, tag
from gcsr.report.page import Panel
from gcsr.report.panels import Made, written
from gcsr.report.said import number, part, percent, text
from gcsr.wording import ROUNDS, counted

# There are some ten candidates and two rounds; a file of unknown origin may claim any number.
MOST_SHOWN, MOST_ROUNDS = 100, 8


def candidates(found: Evidence) -> Made:
    """Every candidate by round, the plan and what was left out."""
    automatic = part(found.small.provenance, "automatic")
    chosen, compared = part(automatic, "chosen"), ranked(automatic)
    rounds = rounds_of(compared)
    table = data_table(
        ("candidate", *rounds, "settings"),
        [_row(one, rounds, chosen) for one in compared[:MOST_SHOWN]],
        numeric=range(1, 1 + len(rounds)),
        caption="Validation accuracy by round",
    )
    lead = (
        f"The automatic mode compared {counted(len(compared), 'candidate')} by networks trained on"
        f" each and chose {_named(chosen)}. No test label is read."
    )
    lines = (*_plan(part(automatic, "plan")), *_left(automatic, len(compared)))
    remarks = (tag("p", line, class_="remark") for line in lines)
    return Panel("How it was chosen", joined(table, *remarks), lead), {}


def ranked(automatic: dict[str, Any]) -> list[dict[str, Any]]:
    """Candidates: the chosen one, then those with scores of later rounds, then by score."""
    # Older files call them a race.
    found = _objects(automatic, "candidates") or _objects(automatic, "race")
    chosen, rounds = part(automatic, "chosen"), rounds_of(found)
    return sorted(
        found, key=lambda one: (is_chosen(one, chosen), standing(one, rounds)), reverse=True
    )


def rounds_of(compared: Sequence[dict[str, Any]]) -> list[str]:
    """Rounds that occur: known ones in their order, then others as they first occur."""
    found = {
        name: None
        for one in compared
        for name, score in scores_of(one).items()
        if score is not None
    }
    # Files sort their keys, so that the order of known rounds is not in them.
    known = [name for name in ROUNDS if name in found]
    return [*known, *(name for name in found if name not in ROUNDS)][:MOST_ROUNDS]


def scores_of(one: dict[str, Any]) -> dict[str, float | None]:
    """Validation accuracies of a candidate by round; ``None`` for what is not a number."""
    scores = part(one, "validation")
    return {name: number(scores, name) for name in scores}


def standing(one: dict[str, Any], rounds: Sequence[str]) -> tuple[float, ...]:
    """Scores from the last round to the first; what has none is below what has any."""
    scores = (scores_of(one).get(name) for name in reversed(rounds))
    return tuple(-math.inf if score is None else score for score in scores)


def is_chosen(one: dict[str, Any], chosen: dict[str, Any]) -> bool:
    """Whether a candidate is the chosen one."""
    return bool(chosen) and all(one.get(key) == chosen.get(key) for key in ("method", "settings"))


def _row(one: dict[str, Any], rounds: Sequence[str], chosen: dict[str, Any]) -> tuple[str, ...]:
    name = f"{text(one, 'method')} (chosen)" if is_chosen(one, chosen) else text(one, "method")
    scores = scores_of(one)
    return name, *(percent(scores.get(each)) for each in rounds), _pairs(part(one, "settings"))


def _plan(plan: dict[str, Any]) -> Iterator[str]:
    if plan:
        yield f"Plan: {_pairs(plan)}."


def _left(automatic: dict[str, Any], compared: int) -> Iterator[str]:
    if compared > MOST_SHOWN:
        yield f"{counted(compared - MOST_SHOWN, 'candidate')} more are in the file."
    for one in _objects(automatic, "left_out")[:MOST_SHOWN]:
        yield f"Left out: {_named(one)} ({text(one, 'reason')})."


def _named(one: dict[str, Any]) -> str:
    settings = part(one, "settings")
    return f"{text(one, 'method')} ({_pairs(settings)})" if settings else text(one, "method")


def _pairs(values: dict[str, Any]) -> str:
    shown = (f"{key}={written(_rounded(value))}" for key, value in values.items())
    return ", ".join(shown)


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _objects(values: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = values.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
