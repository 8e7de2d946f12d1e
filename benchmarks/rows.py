"""Rows of scripts and of ``gcsr benchmark``: how they are kept, and what a table shows of them."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from shlex import join
from typing import Any

from gcsr.benchmarking.cells import PSEUDO_LABELS
from gcsr.benchmarking.measurement import resplit, variant_of
from gcsr.benchmarking.results import markdown_table, outdated_methods
from gcsr.benchmarking.store import Store, failed_row
from gcsr.data.graph import Graph
from gcsr.datasets.loading import load
from gcsr.evaluation.intervals import Accuracy
from gcsr.methods.base import code_versions
from gcsr.utils.devices import machine_name, pick_device
from gcsr.version import __version__

Row = dict[str, Any]
BEFORE = "measured before rows carried a hash of their source"
RESULTS = Path(__file__).parents[1] / "results"
# Revisions of code of which no row records them; read from its commit.
_REVISIONS = {source: {"auto": 7, "bilevel": 3} for source in ("cca4b97", "9b356c7")}
SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_MARK = re.compile("\0([^\0]*)\0")


def accuracy_of(row: Row) -> Accuracy:
    """The scores of a row."""
    return Accuracy.of(row["scores"], row["graphs"])


def with_interval(row: Row | None) -> str:
    """Mean ± half of the 95 % interval; the code is marked by :func:`with_code`."""
    if row is None:
        return "-"
    return f"{str(accuracy_of(row)).removesuffix(' %')}{code_of(row)}"


def with_deviation(row: Row | None) -> str:
    """Mean ± standard deviation over all runs."""
    return "-" if row is None else f"{row['mean']:.1f} ± {row['std']:.1f}{code_of(row)}"


def code_of(row: Row) -> str:
    """A placeholder that names the code of a row."""
    return f"\0{code_name(row)}\0"


def code_name(row: Row) -> str:
    """Version and source; and whether a method's results have changed since."""
    versions = row.get("versions") or {}
    if "source" not in versions:
        return BEFORE
    found = f"version {versions['gcsr']}, source {versions['source'][:7]}"
    revisions = row.get("revisions") or (row.get("made_by") or {}).get("revisions")
    if revisions is None:
        known = _revisions().get(versions["source"][:7], {})
        revisions = {name: known[name] for name in _run_by(row) if name in known}
    if changed := outdated_methods({"revisions": revisions}):
        return f"{found}, an earlier revision of {', '.join(changed)}"
    return found if versions["gcsr"] == __version__ else f"{found}, an earlier version"


def _run_by(row: Row) -> tuple[str, ...]:
    """The method of a row that does not record revisions, and what that method runs."""
    name = row.get("method", "")
    return (name, "bilevel") if name == "auto" else (name,)


@cache
def _revisions() -> dict[str, dict[str, int]]:
    """Revisions of methods by the code they are part of, from all rows that record both."""
    found = {source: dict(known) for source, known in _REVISIONS.items()}

    def read(value: Any) -> None:
        if isinstance(value, dict):
            source = (value.get("versions") or {}).get("source")
            if source and isinstance(value.get("revisions"), dict):
                found.setdefault(source[:7], {}).update(value["revisions"])
            value = list(value.values())
        if isinstance(value, list):
            for one in value:
                read(one)

    for path in sorted(RESULTS.rglob("*.json")):
        read(json.loads(path.read_text(encoding="utf-8")))
    for path in sorted(RESULTS.rglob("*.jsonl")):
        read(list(Store(path)))
    return found


def with_code(lines: list[str]) -> list[str]:
    """Lines whose placeholders are resolved: the most frequent code below, others marked beside."""
    text = "\n".join(lines)
    names = [name for name, _ in Counter(_MARK.findall(text)).most_common()]
    if not names:
        return lines
    marks = {
        name: f" {str(place).translate(SUPERSCRIPT)}" if place else ""
        for place, name in enumerate(names)
    }
    text = _MARK.sub(lambda found: marks[found[1]], text)
    notes = [f"Code: {names[0]}.", *(f"{marks[name].strip()} {name}." for name in names[1:])]
    return [*text.split("\n"), "", " ".join(notes)]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of Markdown."""
    return markdown_table([heads, *rows], ()).split("\n")


def benchmark_rows(path: Path) -> list[Row]:
    """Rows of ``gcsr benchmark`` under the names of cells: ``auto/default/cora:70/gcn``."""
    return [{**row, "cell": _cell(row)} for row in Store(path) if not failed_row(row)]


def _cell(row: Row) -> str:
    place, shares, options = variant_of(row["dataset"])
    name = place.rpartition("/")[2]
    if shares is not None:
        name = f"{name.removesuffix('.npz')}-rich.npz"
    parts = [name, *([str(row["nodes"])] if row.get("nodes") else [])]
    parts += [f"{key}={value}" for key, value in row["given"].items()]
    parts += ["inductive=true"] if options.get("inductive") else []
    method_name = "pseudo" if row["method"] == PSEUDO_LABELS else row["method"]
    return f"{method_name}/{row['preset']}/{':'.join(parts)}/{row['test']}"


def parse(value: str) -> Any:
    """A truth value, a number or a text."""
    if value in ("true", "false"):
        return value == "true"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def graph_of(name: str, options: Sequence[str], root: str | None) -> Graph:
    """The graph of a cell; with the option ``rich`` 60/20/20 % of its labeled nodes are the split."""
    graph = load(name, root=root)
    return resplit(graph, (60, 20, 20), f"{graph.name}-rich") if "rich" in options else graph


def measure_cells(
    parser: argparse.ArgumentParser,
    measured: Callable[[str, argparse.Namespace], Iterable[dict[str, Any]]],
) -> None:
    """Read the command line and put the rows of its cells into a file, in place of older ones.

    Rows that do not say so themselves get the machine, the code and the command of their cell.
    """
    parser.add_argument("cells", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--root", default=None)
    arguments = parser.parse_args()
    rows: dict[str, dict[str, Any]] = {}
    if arguments.out.exists():
        rows = {row["cell"]: row for row in json.loads(arguments.out.read_text())}
    machine = machine_name(pick_device(arguments.device))
    options = [word for word in sys.argv[1:] if word not in arguments.cells]
    program = ["python", f"benchmarks/{Path(sys.argv[0]).name}", *options]
    for cell in arguments.cells:
        by = {"machine": machine, "versions": code_versions(), "command": join([*program, cell])}
        for row in measured(cell, arguments):
            rows[row["cell"]] = by | row
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            arguments.out.write_text(json.dumps([rows[k] for k in sorted(rows)], indent=1) + "\n")
