"""Condensed multi-label graphs beside random nodes and the whole graph.

Run: ``python benchmarks/multilabel.py``. It prints a table and writes ``results/multilabel.json``. The
graph is planted, because no dataset that the library knows by name is multi-label: every label has a
feature vector, and nodes with a common label are often neighbors.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gcsr
from gcsr.evaluation.intervals import Accuracy
from gcsr.methods.base import code_versions

NODES = 50
METHODS = ("random", "kcenter", "bilevel", "auto")
RECIPE = gcsr.TrainingRecipe(validate_every=10)
MEASURES = {"micro_f1": "micro-F1", "macro_f1": "macro-F1", "auc": "AUC"}


def planted(nodes: int = 3000, labels: int = 10, features: int = 64) -> gcsr.Graph:
    """Labels that 8 to 35 % of the nodes have, two on average; half of the nodes are for training."""
    rng = np.random.default_rng(0)
    y = (rng.random((nodes, labels)) < np.linspace(0.35, 0.08, labels)).astype(np.int64)
    x = y @ rng.normal(size=(labels, features)) + 4 * rng.normal(size=(nodes, features))
    members = [np.flatnonzero(column) for column in y.T]
    edges = [rng.choice(one, (2, 4 * one.size)) for one in members]
    edges.append(rng.integers(0, nodes, (2, 2 * nodes)))
    order = rng.permutation(nodes)
    train, val, test = np.split(order, [nodes // 2, 3 * nodes // 4])
    return gcsr.Graph.from_arrays(
        x,
        np.concatenate(edges, 1),
        y,
        train=train,
        val=val,
        test=test,
        undirected=True,
        name="planted-multi-label",
    )


def row_of(method: str, found: gcsr.Evaluation, made: list[gcsr.CondensedGraph]) -> dict[str, Any]:
    """An evaluation, what was condensed, and the code."""
    story = {"method": method, **found.to_dict(), "versions": code_versions()}
    if made:
        story["revisions"] = made[0].provenance["revisions"]
        story["condensing_seconds"] = [one.provenance["measured"]["seconds"] for one in made]
    return story


def main() -> None:
    """Print the table and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=3, help="condensed graphs per method")
    parser.add_argument("--runs", type=int, default=3, help="networks per graph")
    parser.add_argument("--out", type=Path, default=Path("results/multilabel.json"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    graph = planted()
    options: dict[str, Any] = {
        "runs": args.runs,
        "metrics": True,
        "device": "cpu",
        "recipe": RECIPE,
    }
    rows = []
    print(f"{graph}\n\n| nodes | method | {' | '.join(MEASURES.values())} |")
    print("|---" * (2 + len(MEASURES)) + "|")

    def add(method: str, found: gcsr.Evaluation, made: list[gcsr.CondensedGraph]) -> None:
        rows.append(row_of(method, found, made))
        metrics = found.metrics or {}
        cells = [str(Accuracy.of(metrics[name], found.graphs)) for name in MEASURES]
        print(f"| {found.nodes} | {method} | {' | '.join(cells)} |", flush=True)

    for method in METHODS:
        made = gcsr.condense_many(
            graph, nodes=NODES, method=method, seeds=range(args.graphs), device="cpu"
        )
        add(method, gcsr.evaluate(made, graph, **options), made)
    add("whole graph", gcsr.evaluate_full(graph, **options), [])
    command = "python benchmarks/multilabel.py"
    data = {"name": graph.name, "content_hash": graph.content_hash}
    story = {"command": command, "version": gcsr.__version__, "data": data, "rows": rows}
    args.out.write_text(json.dumps(story, indent=1) + "\n")


if __name__ == "__main__":
    main()
