"""Ours beside the published numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from statistics import fmean, pstdev
from typing import Any

from gcsr.paper.cells import Cell, Experiment, Line
from gcsr.paper.rows import Row
from gcsr.paper.work import Outcome

NOT_SUPPORTED = "not supported"
# The one that is shown if the cells of a line differ.
_WORST = ("failed", "absent", "not run")


@dataclass(frozen=True)
class Number:
    """One of our numbers and its rows, or in ``state`` and ``reason`` why there is none."""

    state: str
    mean: float | None = None
    std: float | None = None
    difference: float | None = None
    leaks: bool = False
    graphs: int | None = None
    runs: int | None = None
    reason: str = ""
    rows: tuple[Row, ...] = field(default=(), repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; rows are in their own file."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "rows"}


@dataclass(frozen=True)
class Compared:
    """A line of a table with what we found: as published, and without the leak where that leaks."""

    line: Line
    ours: Number
    without_leak: Number | None = None

    @property
    def numbers(self) -> tuple[Number, ...]:
        """One number, or two."""
        return (self.ours,) if self.without_leak is None else (self.ours, self.without_leak)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        line = self.line
        return {
            "dataset": line.dataset,
            "nodes": line.nodes,
            "label": line.label,
            "published": line.published,
            "published_std": line.published_std,
            "ours": self.ours.to_dict(),
            "without_leak": None if self.without_leak is None else self.without_leak.to_dict(),
        }


def compare(
    experiment: Experiment,
    outcomes: Mapping[Cell, Outcome],
    datasets: Sequence[str] = (),
    *,
    known_too: bool = False,
) -> list[Compared]:
    """The lines of some datasets (by default all); ``known_too``: and others that have a number."""
    compared = [
        Compared(
            line,
            _number(line, line.cells, outcomes),
            _number(line, line.without_leak, outcomes) if line.without_leak else None,
        )
        for line in experiment.lines
    ]
    return [
        one
        for one in compared
        if not datasets
        or one.line.dataset in datasets
        or (known_too and any(number.state == "done" for number in one.numbers))
    ]


def reasons(compared: Sequence[Compared]) -> list[str]:
    """Why numbers are missing, each reason once, with what it concerns."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for one in compared:
        for number in one.numbers:
            if number.reason:
                key = one.line.dataset, number.state, number.reason
                labels = found.setdefault(key, [])
                if one.line.label not in labels:
                    labels.append(one.line.label)
    return [
        f"{dataset}: {state}: {reason}"
        if state == "absent"
        else f"{dataset}, {'; '.join(labels)}: {state}: {reason}"
        for (dataset, state, reason), labels in found.items()
    ]


def _number(line: Line, cells: Sequence[Cell], outcomes: Mapping[Cell, Outcome]) -> Number:
    if not cells:
        return Number(NOT_SUPPORTED, reason=line.missing)
    found = [outcomes[cell] for cell in cells]
    for state in _WORST:
        for outcome in found:
            if outcome.state == state:
                return Number(state, reason=outcome.reason)
    rows = tuple(outcome.row or {} for outcome in found)
    measured = [_measured(row, line.value) for row in rows]
    means = [mean for mean, _ in measured if mean is not None]
    if len(means) < len(rows):
        return Number(
            "not defined", reason=f"{line.value or 'accuracy'} is not defined for every graph"
        )
    mean = fmean(means)
    return Number(
        "done",
        mean,
        measured[0][1] if len(rows) == 1 else None,
        None if line.published is None else mean - line.published,
        any(row.get("leaks_test_labels", False) for row in rows),
        rows[0].get("graphs"),
        rows[0].get("runs"),
        rows=rows,
    )


def _measured(row: Row, value: str) -> tuple[float | None, float | None]:
    """Mean and deviation of a row, or of one of the values that were looked at, over graphs."""
    if not value:
        scores = row.get("scores")
        alone = isinstance(scores, list) and len(scores) == 1
        return row.get("mean"), None if alone else row.get("std")
    values = row.get("values", {}).get(value) or [None]
    if None in values:
        return None, None
    return fmean(values), pstdev(values) if len(values) > 1 else None
