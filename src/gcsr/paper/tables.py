"""Our numbers beside the published ones, as text: for the terminal, Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from statistics import fmean, pstdev
from typing import Any

from gcsr.benchmarking.cells import Cell, Protocol
from gcsr.benchmarking.measurement import Outcome
from gcsr.benchmarking.results import markdown_table
from gcsr.benchmarking.store import Row
from gcsr.paper.experiments import Experiment, Line
from gcsr.utils.formatting import counted, nouns

NOT_SUPPORTED = "not supported"
# Columns, and which of them are flush right.
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
NUMERIC = tuple(name for name in HEADINGS if name not in ("dataset", "what"))
SPREAD = "±: standard deviation over all runs of all condensed graphs, as in the paper."
_OF_THE_LEAK = ("without leak", "its difference")
_NUMBER_FIELDS = ("state", "mean", "std", "difference", "leaks", "graphs", "runs")
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

    def text(self, digits: int) -> str:
        """Mean and deviation, or the state."""
        if self.mean is None:
            return self.state
        deviation = "" if self.std is None else f" ± {self.std:.{digits}f}"
        return f"{self.mean:,.{digits}f}{deviation}{' †' if self.leaks else ''}"

    def gap(self, digits: int) -> str:
        """The difference from the published number."""
        if self.difference is None:
            return ""
        return f"{round(self.difference, digits) + 0.0:+,.{digits}f}"  # + 0.0: never "-0.0"


@dataclass(frozen=True)
class Compared:
    """A line of a table with our number, and that without the leak where the first one leaks."""

    line: Line
    ours: Number
    without_leak: Number | None = None

    @property
    def numbers(self) -> tuple[Number, ...]:
        """One number, or two."""
        return (self.ours,) if self.without_leak is None else (self.ours, self.without_leak)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        names = ("dataset", "nodes", "label", "published", "published_std")
        return {
            **{name: getattr(self.line, name) for name in names},
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
    """Why numbers are missing, each reason once, with the lines it concerns."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for one in compared:
        for number in one.numbers:
            if number.reason:
                key = one.line.dataset, number.state, number.reason
                found.setdefault(key, {})[one.line.label] = None
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
    """Mean and deviation of a row, or of one of the values of its analysis, over graphs."""
    if not value:
        scores = row.get("scores")
        alone = isinstance(scores, list) and len(scores) == 1
        return row.get("mean"), None if alone else row.get("std")
    values = row.get("values", {}).get(value) or [None]
    if None in values:
        return None, None
    return fmean(values), pstdev(values) if len(values) > 1 else None


@dataclass(frozen=True)
class Tally:
    """Of the ``counted`` numbers that have a published deviation, those ``outside`` of it."""

    counted: int
    outside: tuple[str, ...]

    @property
    def within(self) -> int:
        """How many agree."""
        return self.counted - len(self.outside)

    def __str__(self) -> str:
        return f"{self.within} of {self.counted}"


def tally(compared: Sequence[Compared], *, fair: bool = False) -> Tally:
    """Count; ``fair`` takes the number without the leak where there are two."""
    count = 0
    outside = []
    for one in compared:
        number = one.without_leak if fair and one.without_leak is not None else one.ours
        line = one.line
        if number.difference is None or line.published_std is None:
            continue
        count += 1
        # Published numbers are decimals: 0.1 + 0.2 counts as 0.3.
        if abs(number.difference) > line.published_std + 1e-9:
            size = "" if line.nodes is None else f", {line.nodes} {nouns(line.nodes, 'node')}"
            outside.append(
                f"{line.dataset}{size}, {line.label}: {number.gap(line.digits)}"
                f" (ours {number.text(line.digits)}, published {known(line).text(line.digits)})"
            )
    return Tally(count, tuple(outside))


def verdict(compared: Sequence[Compared], protocol: Protocol) -> tuple[list[str], list[str]]:
    """Sentences that count, and one line per number outside; both empty for a quick run."""
    as_published = tally(compared)
    if protocol.quick or not as_published.counted:
        return [], []
    sentence = f"{as_published} cells lie within the published mean ± one std"
    if not any(one.without_leak is not None for one in compared):
        return [f"{sentence}."], list(as_published.outside)
    fair = tally(compared, fair=True)
    sentence += f" with the paper's prior (†); {fair} without the leak."
    return [sentence], list(dict.fromkeys((*as_published.outside, *fair.outside)))


def title(experiment: Experiment, protocol: Protocol) -> str:
    """The title of a table or figure; that of a quick run names it so."""
    quick = "QUICK SMOKE RUN of " if protocol.quick else ""
    return f"{quick}{experiment.name}: {experiment.title}"


def warning(protocol: Protocol) -> str | None:
    """The note on a quick run."""
    if not protocol.quick:
        return None
    return (
        f"Quick smoke run, shortened to {size(protocol.graphs, protocol.runs)}, a few iterations and"
        " epochs: these numbers are no results and are not held against the published ones."
    )


def size(graphs: int, runs: int) -> str:
    """Number of condensed graphs, and of networks trained on each."""
    return f"{counted(graphs, 'graph')} x {counted(runs, 'run')}"


def text_table(compared: Sequence[Compared]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and rows; without the columns of the leak where nothing leaks."""
    leaks = any(one.without_leak is not None for one in compared)
    kept = [name for name in HEADINGS if leaks or name not in _OF_THE_LEAK]
    rows = [dict(zip(HEADINGS, _row(one), strict=True)) for one in compared]
    return tuple(kept), [tuple(row[name] for name in kept) for row in rows]


def _row(one: Compared) -> tuple[str, ...]:
    line, ours, other = one.line, one.ours, one.without_leak
    return (
        line.dataset,
        "-" if line.nodes is None else str(line.nodes),
        line.label,
        "-" if line.published is None else known(line).text(line.digits),
        ours.text(line.digits),
        ours.gap(line.digits),
        "" if other is None else other.text(line.digits),
        "" if other is None else other.gap(line.digits),
        "-" if ours.graphs is None else f"{ours.graphs} x {ours.runs or '-'}",
    )


def known(line: Line) -> Number:
    """The published number."""
    return Number("done", line.published, line.published_std)


def markdown(experiment: Experiment, compared: Sequence[Compared], protocol: Protocol) -> str:
    """A page with the table, its notes and what is missing."""
    note = warning(protocol)
    parts = [f"# {title(experiment, protocol)}", *([f"**{note}**"] if note else [])]
    headings, rows = text_table(compared)
    numeric = [place for place, name in enumerate(headings) if name in NUMERIC]
    counts, outside = verdict(compared, protocol)
    parts += [markdown_table([headings, *rows], numeric), SPREAD, *experiment.notes, *counts]
    if outside:
        parts.append("Outside:\n\n" + "\n".join(f"- {sentence}" for sentence in outside))
    missing = reasons(compared)
    if missing:
        parts.append("\n".join(f"- {sentence}" for sentence in missing))
    return "\n\n".join(parts) + "\n"


def csv_text(experiment: Experiment, compared: Sequence[Compared], protocol: Protocol) -> str:
    """One row per published number, unrounded."""
    stream = io.StringIO()
    columns = ["experiment", "quick", "dataset", "nodes", "what", "published", "published_std"]
    columns += [f"{which}_{name}" for which in ("ours", "without_leak") for name in _NUMBER_FIELDS]
    writer = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for one in compared:
        quick = "yes" if protocol.quick else "no"
        row = one.to_dict() | {
            "experiment": experiment.name,
            "quick": quick,
            "what": one.line.label,
        }
        for which in ("ours", "without_leak"):
            row |= {f"{which}_{name}": value for name, value in (row[which] or {}).items()}
        writer.writerow(row)
    return stream.getvalue()
