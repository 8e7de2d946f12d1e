"""Markdown tables from the rows under results/.

    python benchmarks/tables.py > docs/results.md

Nothing in the tables is typed by hand: every number is in a row, and every row has its command.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

Row = dict[str, Any]


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


def main_table(rows: list[Row]) -> list[str]:
    lines = [
        "| cell | published | ours, paper's prior (leaks) | ours, prior `predicted` |",
        "|---|---|---|---|",
    ]
    cells = [("cora", n) for n in (35, 70, 140)] + [("citeseer", n) for n in (30, 60, 120)]
    for dataset, nodes in cells:
        leaking = find(rows, f"gcsr/paper/{dataset}:{nodes}/gcn")
        honest = find(rows, f"gcsr/paper/{dataset}:{nodes}:prior=predicted/gcn")
        lines.append(
            f"| {dataset.capitalize()}, {nodes} nodes | {published(leaking)} | {shown(leaking)} |"
            f" {shown(honest)} |"
        )
    return lines


def model_table(rows: list[Row], *, condensing: bool) -> list[str]:
    title = "condensing model" if condensing else "test model"
    lines = [f"| {title} | published | ours |", "|---|---|---|"]
    names = ["sgc", "gcn", "appnp", "sage", "cheby"]
    if not condensing:
        names += ["mlp", "sage-textbook", "cheby-textbook", "gat"]
    for name in names:
        cell = f"gcsr/paper/cora:70/{name}"
        if condensing:
            cell = f"gcsr/paper/cora:70{'' if name == 'sgc' else f':model={name}'}/gcn"
        row = find(rows, cell)
        lines.append(f"| {name} | {published(row)} | {shown(row)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--only-main", action="store_true")
    arguments = parser.parse_args()
    rows = load(arguments.results)
    if arguments.only_main:
        print("\n".join(main_table(rows)))
        return
    print("# Results\n")
    print(
        "Test accuracy in percent, mean ± deviation over 5 condensed graphs x 10 trainings, best\n"
        "validation epoch, the authors' settings. Made from the rows under `results/` by\n"
        "`python benchmarks/tables.py`; every row holds its scores, settings and command.\n"
        "The paper's class prior counts every label, test labels included; `predicted` counts\n"
        "training labels and the experts' predictions only.\n"
    )
    print("## GCSR on Cora and Citeseer, tested with GCN\n")
    print("\n".join(main_table(rows)))
    print("\n## Cora, 70 nodes, condensed with SGC, tested with each model (paper's prior)\n")
    print("\n".join(model_table(rows, condensing=False)))
    print("\n## Cora, 70 nodes, condensed with each model, tested with GCN (paper's prior)\n")
    print("\n".join(model_table(rows, condensing=True)))


if __name__ == "__main__":
    main()
