"""The paper's tables and figures from rows that were measured before, whoever measured them.

Rows are those of ``gcsr reproduce`` (results/reproduce/*.jsonl) and of
results/*.json. A cell takes the row of its method, data, test and settings; settings that one of the
two does not know (of another version) are no hindrance. Smoke runs are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gcsr.benchmarking.cells import STATISTICS, WHOLE_GRAPH, Cell, Protocol
from gcsr.benchmarking.measurement import Outcome
from gcsr.paper.experiments import EXPERIMENTS, Experiment
from gcsr.paper.tables import NUMERIC, Compared, compare, tally, text_table, verdict
from rows import accuracy_of, code_name

Row = dict[str, Any]
Place = tuple[Any, ...]
PAPER = Protocol()


def rows_of_runs(folder: Path) -> list[Row]:
    """Rows of ``gcsr reproduce``; the newest first."""
    rows: list[Row] = []
    for file in sorted(folder.glob("*.jsonl")):
        rows += [json.loads(line) for line in file.read_text().splitlines()]
    rows = [row for row in rows if not row["quick"]]
    return sorted(rows, key=lambda row: row["finished"], reverse=True)


def rows_of_cells(rows: Sequence[Row]) -> list[Row]:
    """Rows of results/*.json in the other form: the authors' settings, first seeds."""
    chosen = []
    for row in rows:
        method, preset, name, test = row["cell"].split("/")
        if preset == "paper" and not row["seed"] and "seeds=" not in name:
            chosen.append({**row, "method": method, "test": test, "quick": False})
    return chosen


@dataclass(frozen=True)
class Measured:
    """Rows, the preferred ones first."""

    rows: Sequence[Row]

    @cached_property
    def _by_place(self) -> dict[Place, list[Row]]:
        found: dict[Place, list[Row]] = {}
        for row in self.rows:
            found.setdefault(_place_of_row(row), []).append(row)
        return found

    def row(self, cell: Cell) -> Row | None:
        """The row of a cell: that of most graphs and runs, of equal ones the first."""
        wanted = json.loads(json.dumps(cell.identity(PAPER)))
        fitting = [row for row in self._by_place.get(_place(cell), []) if _fits(row, wanted)]
        return max(fitting, key=lambda row: row.get("graphs", 1) * row.get("runs", 1), default=None)

    def compared(self, experiment: Experiment) -> list[Compared]:
        """The lines of an experiment that have a number, or never will."""
        found = {cell: self.row(cell) for cell in experiment.cells}
        outcomes = {
            cell: Outcome("not run") if row is None else Outcome("done", row)
            for cell, row in found.items()
        }
        lines = compare(experiment, outcomes)
        known = any(one.ours.state == "done" for one in lines)
        shown = ("done", "not supported") if known else ()
        return [one for one in lines if any(number.state in shown for number in one.numbers)]


def _place(cell: Cell) -> Place:
    if cell.method == STATISTICS:
        return cell.method, cell.dataset, dict(cell.settings)["statistic"]
    nodes = cell.nodes if cell.condenses else None
    return cell.method, cell.dataset, nodes, cell.analysis or cell.test, cell.cut


def _place_of_row(row: Row) -> Place:
    if row["method"] == STATISTICS:
        return row["method"], row["dataset"], row["statistic"]
    nodes = None if row["method"] == WHOLE_GRAPH else row["nodes"]
    return (
        row["method"],
        row["dataset"],
        nodes,
        row.get("analysis") or row.get("look") or row["test"],
        row.get("cut", 0.0),
    )


def _fits(row: Row, wanted: Row) -> bool:
    return all(
        row[part][name] == value
        for part in ("settings", "recipe")
        if part in row and part in wanted
        for name, value in wanted[part].items()
        if name in row[part]
    )


def summary(found: Mapping[str, Sequence[Compared]]) -> list[str]:
    """How far every experiment agrees."""
    lines = [
        "| experiment | numbers measured | within the published mean ± one std | without the leak |"
        " published mean in our 95 % interval |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, compared in found.items():
        measured = sum(one.ours.state == "done" for one in compared)
        ours, fair = tally(compared), tally(compared, fair=True)
        leaks = any(one.without_leak is not None for one in compared)
        counts = (str(ours), str(fair) if leaks else "-") if ours.counted else ("-", "-")
        inside = [found for one in compared if (found := _in_interval(one)) is not None]
        last = f"{sum(inside)} of {len(inside)}" if inside else "-"
        lines.append(f"| {name} | {measured} of {_size(name)} | {' | '.join(counts)} | {last} |")
    return lines


def _in_interval(one: Compared) -> bool | None:
    """Whether the published mean is in our interval over graphs; ``None`` without several graphs."""
    rows, published = one.ours.rows, one.line.published
    if published is None or len(rows) != 1 or "scores" not in rows[0] or rows[0]["graphs"] < 2:
        return None
    low, high = accuracy_of(rows[0]).interval or (published, published)
    return low <= published <= high


def _size(name: str) -> int:
    return len(EXPERIMENTS[name].lines)


def section(experiment: Experiment, compared: Sequence[Compared]) -> list[str]:
    """A table with its notes, how many numbers agree, and those that do not."""
    headings, rows = text_table(compared)
    lines = [
        "| " + " | ".join(headings) + " |",
        "|" + "|".join("---:" if name in NUMERIC else "---" for name in headings) + "|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    counted, outside = verdict(compared, Protocol())
    # The note on the leak stands once at the top of the page.
    notes = [note for note in experiment.notes if not note.startswith("†")]
    for paragraph in (*notes, *counted):
        lines += ["", paragraph]
    if outside:
        lines += ["", "Outside:", "", *(f"- {one}" for one in outside)]
    return [*lines, "", _codes(compared)]


def _codes(compared: Sequence[Compared]) -> str:
    """The code of the numbers; where there are several, which numbers are of the less frequent ones."""
    found: dict[str, list[str]] = {}
    for one in compared:
        for number in one.numbers:
            for row in number.rows:
                found.setdefault(code_name(row), []).append(f"{one.line.dataset}, {one.line.label}")
    first, *others = sorted(found, key=lambda name: -len(found[name]))
    others_too = [f"{name}: {'; '.join(dict.fromkeys(found[name]))}" for name in others]
    return ". ".join([f"Code: {first}", *others_too]) + "."
