"""Accuracy, seconds and outer steps of the automatic mode by its budget, one graph each.

    OMP_NUM_THREADS=1 python benchmarks/budgets.py --device cpu --root DATA \
        --out results/bench/budget-cpu.json cora:70 citeseer:60 pubmed:30 \
        amazon-computers:100:rich facebook-pagepage.npz:40:rich

A cell is ``graph:nodes[:rich]`` as in search.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gcsr
from gcsr.data.graph import Graph
from gcsr.utils.devices import pick_device
from rows import graph_of, measure_cells

BUDGETS = (10.0, 30.0, 60.0, 120.0)


def measured(cell: str, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One row per budget."""
    name, nodes, *rest = cell.split(":")

    def graph() -> Graph:
        return graph_of(name, rest, arguments.root)

    title = f"{Path(name).stem}{' 60/20/20' if 'rich' in rest else ''}, {nodes}"
    device = pick_device(arguments.device)
    gcsr.condense(graph(), nodes=int(nodes), budget=1.0, device=device)  # the first loads code
    for budget in BUDGETS:
        # A graph of its own: nothing that an earlier budget computed is there.
        whole = graph()
        small = gcsr.condense(whole, nodes=int(nodes), budget=budget, device=device)
        scores = gcsr.evaluate(small, whole, runs=arguments.runs, device=device)
        made = small.provenance
        plan = made["automatic"]["plan"]
        row = {
            "cell": f"{title}, {budget:g} s",
            "graph": title,
            "budget": budget,
            "mean": scores.mean,
            "scores": list(scores.scores),
            "seconds": made["measured"]["seconds"],
            "peak_memory_bytes": made["measured"]["peak_memory_bytes"],
            "iterations": plan["iterations"],
            "plan": plan,
            "revisions": made["revisions"],
            "data": whole.content_hash,
        }
        print(f"{row['cell']}: {row['mean']:.1f}, {row['seconds']:.1f} s", flush=True)
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    measure_cells(parser, measured)


if __name__ == "__main__":
    main()
