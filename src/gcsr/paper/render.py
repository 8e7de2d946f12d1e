"""Tables as text: for the terminal, Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from gcsr.paper.cells import Experiment, Protocol
from gcsr.paper.compare import Compared, Number, reasons
from gcsr.paper.tally import verdict
from gcsr.wording import counted

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
