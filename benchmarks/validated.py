"""Validation accuracy of cells, for choices: test labels are not read, and nothing is written.

    python benchmarks/validated.py auto/cora:70 auto/cora:70:without=matching clusters/digits:100:k=0

A cell is ``method/dataset:nodes[:key=value...]`` as in accuracy.py; ``inductive=true`` and
``features=rows`` concern the data. Networks of the test protocol are trained on what was made, none of
them one that chose, and kept at their best validation epoch.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch

import gcsr
from accuracy import parse
from gcsr.condense.select import QuickScore
from gcsr.condensed import CondensedGraph
from gcsr.training import TrainingRecipe

# Networks of this seed chose nothing.
SEED = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cells", nargs="+")
    parser.add_argument("--graphs", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--root", default=None)
    arguments = parser.parse_args()
    for cell in arguments.cells:
        measure(cell, arguments)


def measure(cell: str, arguments: argparse.Namespace) -> None:
    """Print the validation accuracy of a cell, graph by graph, and what the automatic mode chose."""
    method, name = cell.split("/", 1)
    dataset, nodes, *extra = name.split(":")
    settings = {key: parse(value) for key, value in (item.split("=", 1) for item in extra)}
    data = {key: settings.pop(key) for key in ("inductive", "features") if key in settings}
    graph = gcsr.load(dataset, root=arguments.root, **data)
    validation = gcsr.View(graph).validation()
    score = QuickScore(validation, torch.device(arguments.device), seed=SEED)
    found, seconds = [], []
    for seed in range(arguments.seed, arguments.seed + arguments.graphs):
        began = time.process_time()
        small = gcsr.condense(
            graph,
            nodes=int(nodes),
            method=method,
            seed=seed,
            device=arguments.device,
            **settings,
        )
        seconds.append(time.process_time() - began)
        found.append(100 * validated(score, small, arguments.runs))
        told = small.provenance.get("automatic")
        if told:
            chosen = told["chosen"]
            expected = told["plan"]["expected_seconds"]
            print(f"  {found[-1]:.1f} {chosen} expected {expected:.0f} s", flush=True)
    spread = statistics.pstdev(found)
    print(
        f"{cell}: {statistics.mean(found):.2f} ± {spread:.2f}, {statistics.mean(seconds):.0f} CPU s"
        " a graph",
        flush=True,
    )


def validated(score: QuickScore, small: CondensedGraph, runs: int) -> float:
    """Mean best validation accuracy (a share) of networks of the protocol."""
    targets: Any = small.y
    if targets.ndim == 1:
        targets = torch.nn.functional.one_hot(targets.clamp_min(0), small.num_classes)
        targets = targets * (small.y >= 0)[:, None]
    device = score.labels.device
    x, a, targets = (part.to(device) for part in (small.x, small.adjacency, targets))
    return score.score(x, a, targets, range(runs), SEED, recipe=TrainingRecipe())


if __name__ == "__main__":
    main()
