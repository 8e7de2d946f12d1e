"""Every part of the automatic mode switched off in turn, as rows that tables.py shows.

    python benchmarks/ablation.py --out results/ablation.json
    python benchmarks/ablation.py --graphs 1 --only cora:70 --only digits:100 --out rows.json

Each part is switched off in turn (``disable=...``), and the whole is beside them.
Rows that are in the file already are left as they are: a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accuracy import measured
from automatic_cells import ABLATED, GRAPHS, with_settings
from automatic_table import OFF


def cells(only: list[str]) -> Iterator[str]:
    """What is measured, graph by graph."""
    for name in ABLATED:
        cell = GRAPHS[name][0]
        if only and cell not in only:
            continue
        yield f"auto/{cell}"
        yield from (f"auto/{with_settings(cell, off)}" for off in OFF.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[], help="a cell, such as cora:70")
    parser.add_argument("--graphs", type=int, default=3)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--root", default=None)
    parser.add_argument("--list", action="store_true", help="name the cells and measure nothing")
    arguments = parser.parse_args()
    wanted = list(cells(arguments.only))
    if arguments.list:
        print("\n".join(wanted))
        return
    rows: dict[str, dict[str, Any]] = {}
    if arguments.out.exists():
        rows = {row["cell"]: row for row in json.loads(arguments.out.read_text())}
    as_accuracy = argparse.Namespace(
        **vars(arguments),
        test="gcn",
        method="auto",
        preset="default",
        seed=0,
        dropout=None,
        epochs=None,
        hidden_channels=None,
    )
    for cell in wanted:
        method, name = cell.split("/", 1)
        if f"{method}/default/{name}/gcn" in rows:
            continue
        for row in measured(cell, as_accuracy):
            rows[row["cell"]] = row
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps([rows[k] for k in sorted(rows)], indent=1) + "\n")


if __name__ == "__main__":
    main()
