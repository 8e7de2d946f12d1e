"""Markdown tables from the rows under results/.

    python benchmarks/tables.py > docs/results.md

The text around the tables is in results_page.md.
Nothing in the tables is typed by hand: every number is in a row, and every row has its command. Rows of
``gcsr reproduce`` go to results/reproduce/NAME.jsonl (a copy of its rows.jsonl) and win over others.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from automatic_table import (
    ablation_section,
    automatic_section,
    budget_section,
    fewer_steps,
    readme_table,
)
from cost_table import cost_section
from gcsr.benchmarking.cells import Cell
from gcsr.evaluation.intervals import compare
from gcsr.paper.experiments import EXPERIMENTS
from gcsr.paper.published import TABLE2
from newer_table import newer_section
from pays_table import pays_sections
from reproduced import Measured, rows_of_cells, rows_of_runs, section, summary
from rows import Row, accuracy_of, benchmark_rows, table, with_code, with_deviation, with_interval

# Places of the template, sections of which there may be no rows, and where its parts begin.
_PLACE = re.compile(r"\{(\w+)\}")
OPTIONAL = ("newer", "experiments", "ablation", "budgets", "costs", "pays")
_BLOCK = re.compile(r"(?m)^(?=## |\{experiments\}|\{pays\})")
# Rows that explain differences from the published table.
EVIDENCE = [
    "random/paper/cora:35:test-dropout=0.5",
    "herding/paper/cora:35:test-dropout=0.5",
    "kcenter/paper/cora:35:test-dropout=0.5",
    "coarsening/paper/cora:35:test-epochs=60:test-hidden_channels=64",
    "coarsening/paper/citeseer:60:test-epochs=200:test-hidden_channels=64",
    *(f"coarsening/paper/citeseer:{nodes}:reduction=0.4" for nodes in (30, 60, 120)),
    "coarsening/paper/citeseer:30:labels=majority",
    "coarsening/paper/citeseer:60:directions=20",
    "coarsening/paper/citeseer:120:directions=20",
    "dcg/paper/cora:35:iterate=last",
    "dcg/paper/cora:70:iterate=last",
    "dcg/paper/cora:140:iterate=last",
    "dcg/paper/citeseer:60:iterate=last",
    "dcg/paper/citeseer:120:iterate=last",
    "gcond-x/paper/cora:70:iterate=last",
    "gcond-x/paper/citeseer:60:iterate=last",
    "gcond/paper/cora:70:iterate=best-val",
    *(
        f"sfgc/paper/{size}:{change}"
        for size in ("cora:35", "citeseer:30")
        for change in (
            "iterate=last",
            "selection=random",
            "learn_student_lr=false",
            "iterate=last:selection=random",
        )
    ),
]


def load(folder: Path) -> list[Row]:
    rows: dict[str, Row] = {}
    for file in sorted(folder.glob("*.json")):
        for row in json.loads(file.read_text()):
            # Some cells are in several files. A row that names its code is the newer one.
            if "cell" in row and "source" not in (rows.get(row["cell"], {}).get("versions") or {}):
                rows[row["cell"]] = row
    newer = {row["cell"]: row for row in benchmark_rows(folder / "automatic.jsonl")}
    return list((_of_same_graphs(rows, newer) | newer).values())


def _of_same_graphs(rows: dict[str, Row], newer: dict[str, Row]) -> dict[str, Row]:
    """Rows without those of a graph that has other content than newer rows of the same name.

    Of such a graph a row that does not name its content is left out too.
    """
    now = {_graph(row): row["data"] for row in newer.values()}
    changed = {
        _graph(row)
        for row in rows.values()
        if row.get("data") and row["data"] != now.get(_graph(row), row["data"])
    }
    return {
        cell: row
        for cell, row in rows.items()
        if _graph(row) not in changed or row.get("data") == now[_graph(row)]
    }


def _graph(row: Row) -> str:
    """The graph of a cell ``method/preset/graph:nodes:settings/model``."""
    return ":".join(row["cell"].split("/")[2:3]).split(":")[0]


def find(rows: list[Row], cell: str) -> Row | None:
    return next((row for row in rows if row["cell"] == cell), None)


def published(row: Row | None) -> str:
    return f"{row['published']}" if row and row["published"] is not None else "-"


METHODS = [
    "random",
    "herding",
    "kcenter",
    "coarsening",
    "dcg",
    "gcond-x",
    "gcond",
    "sfgc",
    "sgdd",
    "mtt",
    "gcsr",
]
CELLS = [("cora", n) for n in (35, 70, 140)] + [("citeseer", n) for n in (30, 60, 120)]
# Shortened runs, where the authors' number of epochs was too long for the machine.
SHORTENED = [
    "",
    *(f":epochs={n}{rest}" for n in (100, 60, 40, 20) for rest in ("", ":iterate=best-val")),
]
# The other graphs, by what their cells are called.
GRAPHS = {
    "digits, 50": "digits:50",
    "PubMed, 30": "pubmed:30",
    "actor, 75": "actor.npz:75",
    "facebook-pagepage, 40, inductive": "facebook-pagepage.npz:40:inductive=true",
    "amazon-computers, 100": "amazon-computers:100",
}


# Their cells, and those of the whole graphs.
GRAPH_CELLS = tuple(f"{method}/default/" for method in ("whole", *METHODS))


def measured(row: Row | None) -> str:
    """Mean and deviation; how many graphs and runs where that is not 5 x 10."""
    if row is None:
        return "-"
    notes = [] if (row["graphs"], row["runs"]) == (5, 10) else [f"{row['graphs']} x {row['runs']}"]
    notes += [f"{part.removeprefix('epochs=')} epochs" for part in short_of(row)]
    return with_deviation(row) + (f" ({', '.join(notes)})" if notes else "")


def short_of(row: Row) -> list[str]:
    """By what a method's authors' settings were shortened."""
    name = row["cell"].split("/")
    return [part for part in ":".join(name[2:3]).split(":") if part.startswith("epochs=")]


def methods_table(rows: list[Row], measured_cells: Measured) -> list[str]:
    """Ours, and the published mean behind it."""
    heads = [f"{dataset.capitalize()} {nodes}" for dataset, nodes in CELLS]
    lines = []
    for method in METHODS:
        found = []
        for dataset, nodes in CELLS:
            cells = [f"{method}/paper/{dataset}:{nodes}{short}/gcn" for short in SHORTENED]
            row = measured_cells.row(Cell(method, dataset, nodes))
            row = row or next((row for cell in cells if (row := find(rows, cell))), None)
            known = TABLE2.get(method, {}).get((dataset, nodes))
            found.append(f"{measured(row)} [{known[0] if known else '-'}]")
        lines.append([method, *found])
    return with_code(table(["method", *heads], lines))


def evidence_table(rows: list[Row], cells: list[str]) -> list[str]:
    """Some cells as they are."""
    lines = []
    for cell in cells:
        row = find(rows, f"{cell}/gcn")
        method, _, name = cell.split("/")
        dataset, nodes, *_ = name.split(":")
        known = TABLE2.get(method, {}).get((dataset, int(nodes)))
        lines.append((f"`{cell}`", str(known[0]) if known else "-", measured(row)))
    return with_code(table(("cell", "published", "ours"), lines))


def graphs_table(rows: list[Row]) -> list[str]:
    """Every method with default settings; ``*``: not distinguishable from the highest mean."""
    whole = [find(rows, f"whole/default/{_without_size(cell)}/gcn") for cell in GRAPHS.values()]
    lines = [["whole", *map(with_interval, whole)]]
    columns = []
    for cell in GRAPHS.values():
        found = {name: find(rows, f"{name}/default/{cell}/gcn") for name in METHODS}
        known = [accuracy_of(row) for row in found.values() if row]
        highest = max(known, key=lambda one: one.mean) if known else None
        shown = {}
        for name, row in found.items():
            equal = row and highest and compare(accuracy_of(row), highest).sign == 0
            # A single network has no interval: nothing can be said.
            star = " *" if equal and accuracy_of(row).interval else ""
            shown[name] = with_interval(row) + star
        columns.append(shown)
    lines += [[name, *(column[name] for column in columns)] for name in METHODS]
    return with_code(table(["method", *GRAPHS], lines))


def _without_size(cell: str) -> str:
    dataset, _, *rest = cell.split(":")
    return ":".join([dataset, *rest])


def main_table(rows: list[Row]) -> list[str]:
    lines = []
    for dataset, nodes in CELLS:
        leaking = find(rows, f"gcsr/paper/{dataset}:{nodes}/gcn")
        honest = find(rows, f"gcsr/paper/{dataset}:{nodes}:prior=predicted/gcn")
        cell = f"{dataset.capitalize()}, {nodes} nodes"
        lines.append((cell, published(leaking), with_both(leaking), with_both(honest)))
    heads = ("cell", "published", "ours, paper's prior (leaks)", "ours, prior `predicted`")
    return with_code(table(heads, lines))


def with_both(row: Row | None) -> str:
    """Mean ± deviation over all runs, and the 95 % interval of the mean over graphs."""
    if row is None or "scores" not in row:
        return with_deviation(row)
    low, high = accuracy_of(row).interval or (row["mean"], row["mean"])
    return f"{with_deviation(row)} [{low:.1f}, {high:.1f}]"


def other_models_table(rows: list[Row]) -> list[str]:
    """Test models that the paper does not have."""
    names = ("sage", "cheby", "gat")
    lines = [(name, with_both(find(rows, f"gcsr/paper/cora:70/{name}"))) for name in names]
    return with_code(table(("test model", "ours"), lines))


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--readme", action="store_true", help="the two tables of the README")
    arguments = parser.parse_args(argv)
    rows = load(arguments.results)
    leaderboard = benchmark_rows(arguments.results / "leaderboard.jsonl")
    if arguments.readme:
        print("\n".join([*readme_table(rows, leaderboard), "", *main_table(rows)]))
        return
    print(page(arguments.results, rows, leaderboard), end="")


def page(results: Path, rows: list[Row], leaderboard: list[Row]) -> str:
    """The template with its sections; those of which there are no rows are left out."""
    cells = Measured([*rows_of_runs(results / "reproduce"), *rows_of_cells(rows)])
    found = {name: cells.compared(one) for name, one in EXPERIMENTS.items()}
    found = {name: compared for name, compared in found.items() if compared}
    default = [row for row in rows if row["cell"].startswith(GRAPH_CELLS)]
    cpu = sorted({row["cell"].split("/")[0] for row in default if row["device"] == "cpu"})
    experiments = [
        f"## {name}: {EXPERIMENTS[name].title}\n\n{_lines(section(EXPERIMENTS[name], compared))}"
        for name, compared in found.items()
    ]
    alone = [_rows(results / "bench" / f"automatic-{device}.json") for device in ("h200", "cpu")]
    sections = {
        "summary": _lines(summary(found)),
        "gcsr": _lines(main_table(rows)),
        "methods": _lines(methods_table(rows, cells)),
        "evidence": _lines(evidence_table(rows, EVIDENCE)),
        "newer": _lines(newer_section(results)),
        "experiments": "\n\n".join(experiments),
        "fewer_steps": fill(fewer_steps(leaderboard, rows), 90),
        "automatic": _lines(automatic_section(rows, alone, leaderboard)),
        "ablation": _lines(ablation_section(rows)),
        "budgets": _lines(budget_section(_rows(results / "bench" / "budget-cpu.json"))),
        "costs": _lines(cost_section(results / "cost")),
        "pays": _lines(pays_sections(results)),
        "on_cpu": f" (on a CPU: {', '.join(cpu)})" if cpu else "",
        "graphs": _lines(graphs_table(rows)),
        "other_models": _lines(other_models_table(rows)),
    }
    template = Path(__file__).with_name("results_page.md").read_text(encoding="utf-8")
    blocks = [
        block
        for block in _BLOCK.split(template)
        if all(sections[name] for name in OPTIONAL if f"{{{name}}}" in block)
    ]
    return _PLACE.sub(lambda place: sections[place[1]], "".join(blocks))


def _lines(lines: list[str]) -> str:
    return "\n".join(lines).strip("\n")


def _rows(path: Path) -> list[Row]:
    return json.loads(path.read_text()) if path.exists() else []


if __name__ == "__main__":
    main()
