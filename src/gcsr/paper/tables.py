"""Tables as text: for the terminal, Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from statistics import fmean, pstdev
from typing import Any

from gcsr.paper.cells import Cell, Experiment, Line, Protocol
from gcsr.paper.store import Row
from gcsr.paper.work import Outcome
from gcsr.utils.formatting import counted, nouns

# -- Ours beside the published numbers ---------------------------------------------------------------


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


# -- How many numbers lie within the published mean ± one deviation, and which do not ----------------


@dataclass(frozen=True)
class Outside:
    """A number that is further from the published one than that one's deviation."""

    compared: Compared
    number: Number

    def __str__(self) -> str:
        line, number = self.compared.line, self.number
        size = "" if line.nodes is None else f", {line.nodes} {nouns(line.nodes, 'node')}"
        ours = f"{number.mean:.{line.digits}f}" + (
            "" if number.std is None else f" ± {number.std:.{line.digits}f}"
        )
        known = f"{line.published:.{line.digits}f} ± {line.published_std:.{line.digits}f}"
        leak = " †" if number.leaks else ""
        gap = f"{number.difference:+.{line.digits}f}"
        return f"{line.dataset}{size}, {line.label}: {gap} (ours {ours}{leak}, published {known})"


@dataclass(frozen=True)
class Tally:
    """Of the ``counted`` numbers that have a published deviation, those ``outside`` of it."""

    counted: int
    outside: tuple[Outside, ...]

    @property
    def within(self) -> int:
        """How many agree."""
        return self.counted - len(self.outside)

    def __str__(self) -> str:
        return f"{self.within} of {self.counted}"


def tally(compared: Sequence[Compared], *, fair: bool = False) -> Tally:
    """Count; ``fair`` takes the number without the leak where there are two."""
    counted = 0
    outside = []
    for one in compared:
        number = one.without_leak if fair and one.without_leak is not None else one.ours
        spread = one.line.published_std
        if number.difference is None or spread is None:
            continue
        counted += 1
        # Published numbers are decimals: 0.1 + 0.2 counts as 0.3.
        if abs(number.difference) > spread + 1e-9:
            outside.append(Outside(one, number))
    return Tally(counted, tuple(outside))


def verdict(compared: Sequence[Compared], protocol: Protocol) -> tuple[list[str], list[str]]:
    """Sentences that count, and one line per number outside; both empty where nothing counts.

    A smoke run is not judged.
    """
    as_published = tally(compared)
    if protocol.quick or not as_published.counted:
        return [], []
    said = "cells lie within the published mean ± one std"
    leaks = any(one.without_leak is not None for one in compared)
    if not leaks:
        return [f"{as_published} {said}."], [str(one) for one in as_published.outside]
    fair = tally(compared, fair=True)
    twice = {id(one.number) for one in as_published.outside}
    listed = [*as_published.outside]
    listed += [one for one in fair.outside if id(one.number) not in twice]
    sentence = f"{as_published} {said} with the paper's prior (†); {fair} without the leak."
    return [sentence], [str(one) for one in listed]


HEADINGS = (
    "dataset",
    "nodes",
    "what",
    "published",
    "ours",
    "difference",
    "without leak",
    "its difference",
    "graphs x runs",
)
_OF_THE_LEAK = ("without leak", "its difference")
# What is flush right.
NUMERIC = tuple(name for name in HEADINGS if name not in ("dataset", "what"))
_NUMBER_FIELDS = ("state", "mean", "std", "difference", "leaks", "graphs", "runs")
_QUICK = (
    "Quick smoke run, shortened to {size}, a few iterations and epochs: these numbers are no results"
    " and are not held against the published ones."
)


def title(experiment: Experiment, protocol: Protocol) -> str:
    """What a table or figure is called; a smoke run says so."""
    quick = "QUICK SMOKE RUN of " if protocol.quick else ""
    return f"{quick}{experiment.name}: {experiment.title}"


def warning(protocol: Protocol) -> str | None:
    """What has to be said of a smoke run."""
    return _QUICK.format(size=size(protocol.graphs, protocol.runs)) if protocol.quick else None


def size(graphs: int, runs: int) -> str:
    """Number of condensed graphs, and of networks trained on each."""
    return f"{counted(graphs, 'graph')} x {counted(runs, 'run')}"


def text_table(compared: Sequence[Compared]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and rows; without the columns of the leak where nothing leaks."""
    leaks = any(one.without_leak is not None for one in compared)
    kept = [i for i, name in enumerate(HEADINGS) if leaks or name not in _OF_THE_LEAK]
    rows = [_row(one) for one in compared]
    return tuple(HEADINGS[i] for i in kept), [tuple(row[i] for i in kept) for row in rows]


def markdown(experiment: Experiment, compared: Sequence[Compared], protocol: Protocol) -> str:
    """A page with the table, its notes and what is missing."""
    said = warning(protocol)
    parts = [f"# {title(experiment, protocol)}", *([f"**{said}**"] if said else [])]
    headings, rows = text_table(compared)
    table = [
        "| " + " | ".join(headings) + " |",
        "|" + "|".join("---:" if name in NUMERIC else "---" for name in headings) + "|",
    ]
    table += ["| " + " | ".join(_escaped(text) for text in row) + " |" for row in rows]
    parts += ["\n".join(table), *experiment.notes]
    tallied, outside = verdict(compared, protocol)
    parts += tallied
    if outside:
        parts.append("Outside:\n\n" + "\n".join(f"- {sentence}" for sentence in outside))
    missing = reasons(compared)
    if missing:
        parts.append("\n".join(f"- {sentence}" for sentence in missing))
    return "\n\n".join(parts) + "\n"


def csv_text(experiment: Experiment, compared: Sequence[Compared], protocol: Protocol) -> str:
    """One row per published number, unrounded."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    ours = [f"ours_{name}" for name in _NUMBER_FIELDS]
    without = [f"without_leak_{name}" for name in _NUMBER_FIELDS]
    first = ["experiment", "quick", "dataset", "nodes", "what", "published", "published_std"]
    writer.writerow([*first, *ours, *without])
    for one in compared:
        line = one.line
        writer.writerow(
            [
                experiment.name,
                "yes" if protocol.quick else "no",
                line.dataset,
                line.nodes,
                line.label,
                line.published,
                line.published_std,
                *_fields(one.ours),
                *_fields(one.without_leak),
            ]
        )
    return stream.getvalue()


def _row(one: Compared) -> tuple[str, ...]:
    line, ours, other = one.line, one.ours, one.without_leak
    known = "-" if line.published is None else _value(line.published, line.digits)
    if line.published_std is not None:
        known += f" ± {line.published_std:.{line.digits}f}"
    counts = "-" if ours.graphs is None else f"{ours.graphs} x {ours.runs or '-'}"
    return (
        line.dataset,
        "-" if line.nodes is None else str(line.nodes),
        line.label,
        known,
        _said(ours, line.digits),
        _gap(ours, line.digits),
        "" if other is None else _said(other, line.digits),
        "" if other is None else _gap(other, line.digits),
        counts,
    )


def _value(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}"


def _said(number: Number, digits: int) -> str:
    if number.mean is None:
        return number.state
    deviation = "" if number.std is None else f" ± {number.std:.{digits}f}"
    return _value(number.mean, digits) + deviation + (" †" if number.leaks else "")


def _gap(number: Number, digits: int) -> str:
    if number.difference is None:
        return ""
    return f"{round(number.difference, digits) + 0.0:+,.{digits}f}"  # + 0.0: never "-0.0"


def _fields(number: Number | None) -> list[object]:
    if number is None:
        return [None] * len(_NUMBER_FIELDS)
    return [getattr(number, name) for name in _NUMBER_FIELDS]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
