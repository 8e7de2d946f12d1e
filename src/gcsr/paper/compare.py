"""Ours beside the published numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from gcsr.paper.cells import Cell, Experiment, Line
from gcsr.paper.work import Outcome

NOT_AVAILABLE = "not available"
# The one that is shown if the cells of a line differ.
_WORST = ("failed", "absent", "not run")


@dataclass(frozen=True)
class Number:
    """One of our numbers, or in ``state`` and ``reason`` why there is none."""

    state: str
    mean: float | None = None
    std: float | None = None
    difference: float | None = None
    leaks: bool = False
    graphs: int | None = None
    runs: int | None = None
    reason: str = ""


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
            "ours": asdict(self.ours),
            "without_leak": None if self.without_leak is None else asdict(self.without_leak),
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
        return Number(NOT_AVAILABLE, reason=line.missing)
    found = [outcomes[cell] for cell in cells]
    for state in _WORST:
        for outcome in found:
            if outcome.state == state:
                return Number(state, reason=outcome.reason)
    rows = [outcome.row or {} for outcome in found]
    mean = fmean(row["mean"] for row in rows)
    return Number(
        "done",
        mean,
        rows[0]["std"] if len(rows) == 1 else None,
        None if line.published is None else mean - line.published,
        any(row["leaks_test_labels"] for row in rows),
        rows[0].get("graphs"),
        rows[0].get("runs"),
    )
