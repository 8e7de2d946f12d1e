"""Continual learning: condensed, Herding and random memories of the same bytes, and no memory.

    python benchmarks/continual.py --out results/continual/all.json digits:2:20000 \
        amazon-computers.npz:2:200000:rich ../shared/data/graphs/wordnet.npz:11:200000

A cell is ``graph:classes per task:bytes[:rich]``. Tasks are the parts of the graph with the next
classes, in their order. After every task a fresh GCN of PyG is trained on the memory of all tasks so
far, for a fixed number of epochs, and has to tell all classes seen so far apart on test nodes of the
graph seen so far. ``none`` is one network that goes on with the newest task alone, ``joint`` is trained
on all tasks. Average accuracy is that of all tasks after the last one. Forgetting is how much lower a
task is then than right after it was learned (mean over earlier tasks).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch_geometric.nn import GCN

import gcsr
from gcsr.utils.devices import pick_device
from rows import graph_of, measure_cells

HIDDEN, EPOCHS = 64, 200
BRIEF = {"hidden_channels": 64, "epochs": 100}
MEMORIES: dict[str, dict[str, Any]] = {
    "clusters": {"method": "clusters"},
    "auto": {"method": "auto"},
    "herding": {"method": "herding", **BRIEF},
    "random": {"method": "random"},
}


def measured(cell: str, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row per way of learning."""
    name, per_task, room, *rest = cell.split(":")
    device = pick_device(arguments.device)
    graph = graph_of(name, rest, arguments.root)
    firsts = list(range(0, graph.num_classes, int(per_task)))
    tasks = [(first, min(first + int(per_task), graph.num_classes)) for first in firsts]
    ways = arguments.ways.split(",") if arguments.ways else [*MEMORIES, "none", "joint"]
    for way in ways:
        found = []
        for seed in range(arguments.seeds):
            began = time.perf_counter()
            table, size = learned(graph, tasks, way, int(room), seed, device)
            final = table[-1]
            forgetting = np.mean([table[t][t] - final[t] for t in range(len(tasks) - 1)])
            found.append(
                {
                    "average_accuracy": float(np.mean(final)),
                    "forgetting": float(forgetting),
                    "bytes": size,
                    "seconds": time.perf_counter() - began,
                    "accuracies": table,
                }
            )
        values = {
            key: [one[key] for one in found] for key in ("average_accuracy", "forgetting", "bytes")
        }
        print(
            f"{cell} {way}:"
            + "".join(f" {key} {np.mean(v):.1f} ± {np.std(v):.1f}" for key, v in values.items()),
            flush=True,
        )
        yield {
            "cell": f"{cell} {way} {device.type}",
            **{key: float(np.mean(value)) for key, value in values.items()},
            "std": float(np.std(values["average_accuracy"], ddof=1 if len(found) > 1 else 0)),
            "runs": found,
            "data": graph.content_hash,
        }


def learned(
    graph: gcsr.Graph,
    tasks: list[tuple[int, int]],
    way: str,
    room: int,
    seed: int,
    device: torch.device,
) -> tuple[list[list[float]], int]:
    """Accuracies of all tasks so far after every task, and the bytes of the memory."""
    memory = None
    if way in MEMORIES:
        memory = gcsr.Replay(room, seed=seed, device=device, **MEMORIES[way])
    table: list[list[float]] = []
    module = network(graph, seed, device)
    for first, end in tasks:
        task = graph.subgraph((graph.y >= first) & (graph.y < end))
        seen = graph.subgraph((graph.y >= 0) & (graph.y < end))
        if memory is not None:
            data = memory.observe(task).to_pyg()
        else:
            data = (task if way == "none" else seen).to_pyg()
        if way != "none":
            module = network(graph, seed, device)
        train(module, data.to(device), end)
        table.append(accuracies(module, seen, [one for one in tasks if one[1] <= end], device))
    return table, 0 if memory is None else memory.nbytes


def network(graph: gcsr.Graph, seed: int, device: torch.device) -> GCN:
    """A fresh network over all classes."""
    torch.manual_seed(seed)
    size = {"num_layers": 2, "out_channels": graph.num_classes, "dropout": 0.5}
    return GCN(graph.num_features, HIDDEN, **size).to(device)


def train(module: GCN, data: Any, classes: int) -> None:
    """A fixed number of epochs; the last one counts. Classes to come have no score."""
    adam = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=5e-4)
    targets = data.get("y_soft", data.y)
    targets = targets[:, :classes] if targets.ndim == 2 else targets
    module.train()
    for _ in range(EPOCHS):
        adam.zero_grad()
        scores = module(data.x, data.edge_index, edge_weight=data.get("edge_weight"))
        cross_entropy(scores[data.train_mask, :classes], targets[data.train_mask]).backward()
        adam.step()


@torch.no_grad()
def accuracies(
    module: GCN, seen: gcsr.Graph, tasks: list[tuple[int, int]], device: torch.device
) -> list[float]:
    """Percent of every task's test nodes that are told from all classes so far."""
    data = seen.to_pyg().to(device)
    module.eval()
    scores = module(data.x, data.edge_index, edge_weight=data.get("edge_weight"))
    right = (scores[:, : tasks[-1][1]].argmax(1) == data.y)[data.test_mask].double()
    labels = data.y[data.test_mask]
    return [float(100 * right[(labels >= a) & (labels < b)].mean()) for a, b in tasks]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ways", default="", help="some of them, separated by commas")
    measure_cells(parser, measured)


if __name__ == "__main__":
    main()
