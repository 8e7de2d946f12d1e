"""Clustered starts compared where no test label is: on nodes that belong to no split.

    python benchmarks/starts.py --out rows.json
    python benchmarks/starts.py --only cora-70-small-0 --teachers consistent --draws 1 --out rows.json

What the race of the automatic mode tries was chosen on these development splits. Labels of test nodes
are removed before anything else:

- ``public``: the graph's own split; accuracy on the nodes that are in none of its parts;
- ``small``: 20 training and 30 validation nodes per class, drawn from all others; accuracy on the rest;
- ``holdout``: 30 % of the training nodes are kept for the accuracy.

A row has what the networks of the race's closer look say of a start, and the protocol's accuracy
(three runs).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import torch

import gcsr
from gcsr.condense import Clusters
from gcsr.condense.automatic import Judge
from gcsr.condense.automatic.rounds import CLOSER
from gcsr.condense.condenser import Made
from gcsr.devices import pick_device
from gcsr.graph import Graph
from gcsr.views import View

# Graph, nodes, split and seed.
CELLS = (
    *(("actor.npz", 50, "holdout", seed) for seed in range(2)),
    *(("citeseer", nodes, "public", seed) for nodes, seed in ((120, 0), (120, 1), (60, 2))),
    *(("citeseer", nodes, "small", seed) for nodes, seed in ((60, 0), (120, 1))),
    *(("cora", nodes, "public", seed) for nodes, seed in ((70, 0), (140, 1))),
    *(("cora", 70, "small", seed) for seed in range(2)),
    ("pubmed", 30, "public", 0),
    *(("pubmed", 30, "small", seed) for seed in range(3)),
)


def name_of(cell: tuple[str, int, str, int]) -> str:
    """How rows call a cell."""
    graph, nodes, split, seed = cell
    return f"{graph.removesuffix('.npz')}-{nodes}-{split}-{seed}"


def development(graph: Graph, split: str, seed: int) -> Graph:
    """The graph without its test labels, and a split in which other nodes take their place."""
    y = graph.y.clone()
    y[graph.test] = -1
    generator = torch.Generator().manual_seed(100 + seed)
    train, val = graph.train, graph.val
    if split == "holdout":
        order = train[torch.randperm(train.numel(), generator=generator)]
        cut = int(0.7 * order.numel())
        return replace(graph, y=y, train=order[:cut].sort().values, test=order[cut:].sort().values)
    if split == "small":
        drawn = []
        for label in range(graph.num_classes):
            own = (y == label).nonzero().flatten()
            drawn.append(own[torch.randperm(own.numel(), generator=generator)])
        train = torch.cat([own[:20] for own in drawn]).sort().values
        val = torch.cat([own[20:50] for own in drawn]).sort().values
    left = y >= 0
    left[train] = left[val] = False
    return replace(graph, y=y, train=train, val=val, test=left.nonzero().flatten())


def measured(
    cell: tuple[str, int, str, int], asked: argparse.Namespace, device: torch.device
) -> list[dict[str, Any]]:
    """A row for every teacher, grouping, number of hops and draw."""
    name, nodes, split, seed = cell
    graph = development(gcsr.load(name, root=asked.root), split, seed)
    view = View(graph).condensing()
    judge = Judge(view.validation, graph.num_classes, device)
    rows = []
    for draw, teacher, grouping, k in product(
        range(asked.draws), asked.teachers, asked.groupings, (1, 2, 0)
    ):
        settings = {"teacher": teacher, "grouping": grouping, "k": k, "draw": draw}
        small = Clusters(nodes=nodes, **settings).condense(graph, seed=seed, device=device)
        tested = gcsr.evaluate(small, graph, runs=3, seed=1, device=device)
        rows.append(
            {
                "cell": name_of(cell),
                **settings,
                "validation": 100
                * judge(Made(small.x, small.adjacency, small.y), CLOSER).validation,
                "accuracy": tested.mean,
            }
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[], help="a cell, by its name")
    parser.add_argument("--teachers", nargs="+", default=["consistent", "together", "mlp"])
    parser.add_argument("--groupings", nargs="+", default=["halves", "k-means"])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--root", default=None)
    asked = parser.parse_args()
    wanted = [cell for cell in CELLS if not asked.only or name_of(cell) in asked.only]
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for cell in wanted:
        rows += measured(cell, asked, pick_device(asked.device))
        asked.out.write_text(json.dumps({"starts": rows}, indent=0) + "\n")


if __name__ == "__main__":
    main()
