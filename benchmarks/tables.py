"""Markdown tables from the rows under results/.

    python benchmarks/tables.py > docs/results.md

Nothing in the tables is typed by hand: every number is in a row, and every row has its command. Rows of
``gcsr reproduce`` go to results/reproduce/NAME.jsonl (a copy of its rows.jsonl) and win over others.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from automatic_table import ablation_section, automatic_section, budget_section
from cost_table import cost_section
from gcsr.paper.cells import Cell
from gcsr.paper.experiments import EXPERIMENTS
from gcsr.paper.published import TABLE2
from reproduced import Measured, rows_of_cells, rows_of_runs, section, summary

Row = dict[str, Any]
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
    rows: list[Row] = []
    for file in sorted(folder.glob("*.json")):
        rows += [row for row in json.loads(file.read_text()) if "cell" in row]
    return rows


def shown(row: Row | None) -> str:
    return f"{row['mean']:.1f} ± {row['std']:.1f}" if row else "-"


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


def measured(row: Row | None) -> str:
    """Mean and deviation; how many graphs and runs where that is not 5 x 10."""
    if row is None:
        return "-"
    said = [] if (row["graphs"], row["runs"]) == (5, 10) else [f"{row['graphs']} x {row['runs']}"]
    said += [f"{part.removeprefix('epochs=')} epochs" for part in short_of(row)]
    return shown(row) + (f" ({', '.join(said)})" if said else "")


def short_of(row: Row) -> list[str]:
    """By what a method's authors' settings were shortened."""
    name = row["cell"].split("/")
    return [part for part in ":".join(name[2:3]).split(":") if part.startswith("epochs=")]


def methods_table(rows: list[Row], measured_cells: Measured) -> list[str]:
    """Ours, and the published mean behind it."""
    heads = [f"{dataset.capitalize()} {nodes}" for dataset, nodes in CELLS]
    lines = ["| method | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for method in METHODS:
        found = []
        for dataset, nodes in CELLS:
            cells = [f"{method}/paper/{dataset}:{nodes}{short}/gcn" for short in SHORTENED]
            row = measured_cells.row(Cell(method, dataset, nodes))
            row = row or next((row for cell in cells if (row := find(rows, cell))), None)
            known = TABLE2.get(method, {}).get((dataset, nodes))
            found.append(f"{measured(row)} [{known[0] if known else '-'}]")
        lines.append(f"| {method} | " + " | ".join(found) + " |")
    return lines


def evidence_table(rows: list[Row], cells: list[str]) -> list[str]:
    """Some cells as they are."""
    lines = ["| cell | published | ours |", "|---|---|---|"]
    for cell in cells:
        row = find(rows, f"{cell}/gcn")
        method, _, name = cell.split("/")
        dataset, nodes, *_ = name.split(":")
        known = TABLE2.get(method, {}).get((dataset, int(nodes)))
        lines.append(f"| `{cell}` | {known[0] if known else '-'} | {measured(row)} |")
    return lines


def graphs_table(rows: list[Row]) -> list[str]:
    """Every method with default settings on graphs that nobody tuned for."""
    lines = ["| method | " + " | ".join(GRAPHS) + " |", "|---" * (len(GRAPHS) + 1) + "|"]
    for method in ["whole", *METHODS]:
        found = []
        for cell in GRAPHS.values():
            dataset, _, *rest = cell.split(":")
            name = ":".join([dataset, *rest]) if method == "whole" else cell
            row = find(rows, f"{method}/default/{name}/gcn")
            found.append(f"{row['mean']:.1f}" if row else "-")
        lines.append(f"| {method} | " + " | ".join(found) + " |")
    return lines


def main_table(rows: list[Row]) -> list[str]:
    lines = [
        "| cell | published | ours, paper's prior (leaks) | ours, prior `predicted` |",
        "|---|---|---|---|",
    ]
    for dataset, nodes in CELLS:
        leaking = find(rows, f"gcsr/paper/{dataset}:{nodes}/gcn")
        honest = find(rows, f"gcsr/paper/{dataset}:{nodes}:prior=predicted/gcn")
        lines.append(
            f"| {dataset.capitalize()}, {nodes} nodes | {published(leaking)} | {shown(leaking)} |"
            f" {shown(honest)} |"
        )
    return lines


def other_models_table(rows: list[Row]) -> list[str]:
    """Test models that the paper does not have."""
    lines = ["| test model | ours |", "|---|---|"]
    for name in ("sage", "cheby", "gat"):
        lines.append(f"| {name} | {shown(find(rows, f'gcsr/paper/cora:70/{name}'))} |")
    return lines


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--only-main", action="store_true")
    arguments = parser.parse_args(argv)
    rows = load(arguments.results)
    if arguments.only_main:
        print("\n".join(main_table(rows)))
        return
    cells = Measured(
        [*rows_of_runs(arguments.results / "reproduce"), *rows_of_cells(rows)],
    )
    found = {name: cells.compared(one) for name, one in EXPERIMENTS.items()}
    found = {name: compared for name, compared in found.items() if compared}
    print("# Results\n")
    print(
        "Test accuracy in percent, mean ± deviation over 5 condensed graphs x 10 trainings, best\n"
        "validation epoch, the authors' settings. Made from the rows under `results/` by\n"
        "`python benchmarks/tables.py`; every row holds its scores, settings and command.\n\n"
        "† The paper's class prior counts every label, test labels included: not a fair score. Beside\n"
        "it, without the leak: the prior `predicted`, which counts training labels and the experts'\n"
        "predictions only.\n"
    )
    print("## How far the paper is reproduced\n")
    print("\n".join(summary(found)))
    print(
        "\nNumbers without a published deviation are not counted. Every table below lists what was\n"
        "measured, and what lies outside."
    )
    print("\n## GCSR on Cora and Citeseer, tested with GCN\n")
    print("\n".join(main_table(rows)))
    print("\n## Every method, authors' settings, tested with GCN\n")
    print(
        "Ours, and the paper's mean in brackets (GCond-X is not in its table). 5 graphs x 10 runs\n"
        "unless a cell says otherwise. GCSR with the paper's prior, which leaks. A cell that names\n"
        "epochs was shortened (SGDD's authors run 2,000). At 140 and 120 nodes Random, Herding and\n"
        "K-Center keep every training node. Coarsening does not depend on the seed: one graph.\n"
    )
    print("\n".join(methods_table(rows, cells)))
    print(Path(__file__).with_name("differences.md").read_text().rstrip("\n"))
    print("\n### The rows these refer to\n")
    print("\n".join(evidence_table(rows, EVIDENCE)))
    for name, compared in found.items():
        print(f"\n## {name}: {EXPERIMENTS[name].title}\n")
        print("\n".join(section(EXPERIMENTS[name], compared)))
    print("\n## The automatic mode\n")
    print(
        "Ten nodes per class, no test label used: 3 condensed graphs x 5 trainings of a GCN, by\n"
        "`python benchmarks/accuracy.py --preset default --graphs 3 --runs 5 --out rows.json\n"
        "auto/cora:70` and the like (`results/automatic.json`), on the named device. In a budget a\n"
        "CPU takes fewer outer steps. Rows of an H200 were measured before the rule that the latest\n"
        "of equally good iterates is returned. Seconds and peak memory in the last column are of one\n"
        "graph on an H200 (`results/bench/automatic-h200.json`). Label-rich files are made\n"
        "by `benchmarks/label_rich.py`.\n"
    )
    timed = arguments.results / "bench" / "automatic-h200.json"
    alone = json.loads(timed.read_text()) if timed.exists() else []
    print("\n".join(automatic_section(rows, alone)))
    ablation = ablation_section(rows)
    if ablation:
        print("\n## Ablation of the automatic mode\n")
        print(
            "Mean test accuracy with one part switched off (`benchmarks/ablation.py`): 3 graphs x 5\n"
            "trainings, with many labels 1 to 3 graphs.\n"
        )
        print("\n".join(ablation))
    budgets = arguments.results / "bench" / "budget-cpu.json"
    if budgets.exists():
        print("\n## Budgets of the automatic mode\n")
        print(
            "Test accuracy, seconds and outer steps of one graph by `--budget` on one core of a\n"
            "server whose other cores were busy (`gcsr condense DATA --nodes N --budget SECONDS\n"
            "--device cpu`, `results/bench/budget-cpu.json`; 5 trainings of a GCN). Without outer\n"
            "steps the budget is less than everything else takes, and a warning says so. The expected\n"
            "seconds were fitted again on an idle core afterward (`src/gcsr/auto/costs.py`).\n"
        )
        print("\n".join(budget_section(json.loads(budgets.read_text()))))
    costs = cost_section(arguments.results / "cost")
    if costs:
        print("\n## What the automatic mode costs and saves\n")
        print(
            "`gcsr cost FILE --data DATA --json` of one graph each (`results/cost/`), random subsets\n"
            "of the same bytes. Break-even: after how many trainings by the test protocol, which\n"
            "validates on the real graph after every epoch, condensing has paid for itself.\n"
        )
        print("\n".join(costs))
    print("\n## Every method, default settings, graphs that nobody tuned for\n")
    print(
        "Mean of 3 condensed graphs x 5 trainings of a GCN (Coarsening, the same for every seed: one\n"
        "of each); `whole` is trained on the whole graph.\n"
    )
    print("\n".join(graphs_table(rows)))
    print("\n## Cora, 70 nodes, tested with models that are not in the paper (paper's prior)\n")
    print("\n".join(other_models_table(rows)))


if __name__ == "__main__":
    main()
