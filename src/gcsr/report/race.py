"""How the automatic mode chose: who raced, how they validated, and what had been planned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gcsr.report.charts import data_table
from gcsr.report.evidence import Evidence
from gcsr.report.html import joined, tag
from gcsr.report.page import Panel
from gcsr.report.panels import Made, written
from gcsr.report.said import NOTHING, number, part, percent, seconds, text
from gcsr.wording import ROUNDS, counted

# A race has some dozens of candidates; a file of unknown origin may claim any number.
MOST_SHOWN = 100


def race(found: Evidence) -> Made:
    """Every candidate by round, the plan and the calibration."""
    told = part(found.small.provenance, "automatic")
    chosen, raced = part(told, "chosen"), ranked(told)
    rows = [_row(one, chosen) for one in raced[:MOST_SHOWN]]
    table = data_table(
        ("candidate", *ROUNDS, "agreement", "settings"),
        rows,
        numeric=(1, 2, 3, 4),
        caption="Validation accuracy by round, and agreement with the teacher in the last of them",
    )
    lead = (
        f"The automatic mode chose {_named(chosen)} among {counted(len(raced), 'candidate')}: networks"
        " are trained on what they made, for longer with every round; of the last ones the mean of the"
        f" last two rounds decides{_opinion(told)}. No test label is read."
    )
    lines = (*_plan(part(told, "plan")), _calibration(told), *_left(told, len(raced)))
    remarks = (tag("p", line, class_="remark") for line in lines)
    return Panel("How it was chosen", joined(table, *remarks), lead), {}


def _row(one: dict[str, Any], chosen: dict[str, Any]) -> tuple[str, ...]:
    name = f"{text(one, 'method')} (chosen)" if is_chosen(one, chosen) else text(one, "method")
    scores = part(one, "validation")
    each = (percent(number(scores, name)) for name in ROUNDS)
    return name, *each, percent(agreement(one)), _pairs(part(one, "settings"))


def ranked(told: dict[str, Any]) -> list[dict[str, Any]]:
    """Candidates in their order: who was chosen, and then the others as they stand."""
    chosen = part(told, "chosen")
    return sorted(
        _objects(told, "race"),
        key=lambda one: (is_chosen(one, chosen), standing(one)),
        reverse=True,
    )


def is_chosen(one: dict[str, Any], chosen: dict[str, Any]) -> bool:
    """Whether a candidate is the one that won."""
    return bool(chosen) and all(one.get(key) == chosen.get(key) for key in ("method", "settings"))


def agreement(one: dict[str, Any]) -> float | None:
    """How often its networks agreed with the teacher in the last round that asked."""
    found = [number(part(one, "agreement"), name) for name in ROUNDS]
    return next((share for share in reversed(found) if share is not None), None)


def standing(one: dict[str, Any]) -> tuple[float, ...]:
    """Who came furthest, and then who did best there; of the last ones in the last two rounds."""
    scores = part(one, "merit") or part(one, "validation")
    first, closer, last = (number(scores, each) for each in ROUNDS)
    final = None if closer is None or last is None else closer + last
    return tuple(-1.0 if score is None else score for score in (final, closer, first))


def _opinion(told: dict[str, Any]) -> str:
    """What decided beside validation accuracy."""
    asked = part(told, "second_opinion")
    if not asked:
        return ""
    nodes = int(number(asked, "unlabelled_nodes") or 0)
    return (
        f", and with it how often networks agree with the teacher {text(asked, 'teacher')} on"
        f" {counted(nodes, 'node')} without a label, which counts {_short(asked, 'weight')} times as"
        " much as validation"
    )


def _plan(plan: dict[str, Any]) -> Iterator[str]:
    if not plan:
        return
    redraws, scouts, longer = (
        int(number(plan, each) or 0) for each in ("redraws", "scouting_iterations", "iterations")
    )
    matching = "nothing is matched"
    if scouts:
        matching = f"matches of {counted(scouts, 'iteration')}"
        matching += f", the best of them of {counted(longer, 'iteration')}" if longer else ""
    yield (
        f"Plan: teachers {_listed(plan, 'teachers')}; hops {_listed(plan, 'hops')};"
        f" grouped by {text(plan, 'grouping')};"
        f" {counted(redraws, 'redraw')} of the best starts; {matching};"
        f" {seconds(number(plan, 'expected_seconds'))} expected."
    )


def _calibration(told: dict[str, Any]) -> str:
    found = part(told, "calibration")
    if not found:
        return "Calibration: none, because nothing was matched with rates of its own."
    plain = {key: value for key, value in found.items() if isinstance(value, int | float)}
    rates = [
        f"{_short(one, 'steps')} steps at {_short(one, 'rate')}"
        f" for {_short(one, 'expert_steps')} epochs of an expert"
        for one in _objects(found, "students")
    ]
    return f"Calibration: {_pairs(plain)}; students: {'; '.join(rates) or 'none'}."


def _left(told: dict[str, Any], raced: int) -> Iterator[str]:
    if raced > MOST_SHOWN:
        yield f"{counted(raced - MOST_SHOWN, 'candidate')} more are in the file."
    for one in _objects(told, "left_out")[:MOST_SHOWN]:
        yield f"Left out: {_named(one)} ({text(one, 'reason')})."


def _short(one: dict[str, Any], name: str) -> str:
    """A number as short as it can be written."""
    value = number(one, name)
    return NOTHING if value is None else f"{value:.4g}"


def _named(one: dict[str, Any]) -> str:
    settings = part(one, "settings")
    return f"{text(one, 'method')} ({_pairs(settings)})" if settings else text(one, "method")


def _pairs(values: dict[str, Any]) -> str:
    shown = (f"{key}={written(_rounded(value))}" for key, value in values.items())
    return ", ".join(shown)


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _listed(values: dict[str, Any], name: str) -> str:
    found = values.get(name)
    return ", ".join(map(str, found)) if isinstance(found, list) and found else "none"


def _objects(values: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = values.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
