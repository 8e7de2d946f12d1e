"""Settings of bilevel condensation on development splits, whose test nodes are no test nodes.

    python benchmarks/development.py --out rows.json wordnet.npz:440 cora:70:iterations=100

A cell is ``dataset:nodes[:few][:split=seed][:key=value...]``. Test labels of the dataset are removed
first. The development test nodes are nodes in no split (Cora, Citeseer, PubMed), else a fifth of the
training nodes. ``few`` keeps 20 training and 30 validation nodes per class; the other training nodes
are the test nodes. ``split`` divides all other labeled nodes 60/20/20 at random. Three condensed
graphs, three GCNs each.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
import torch

import gcsr
from gcsr.utils.devices import machine_name, pick_device
from rows import measure_cells, parse

GRAPHS, RUNS, MOST_TEST_NODES = 3, 3, 10_000


def development(graph: gcsr.Graph, *, few: bool, split: int | None = None) -> gcsr.Graph:
    """The graph with its test labels removed and other test nodes."""
    random = np.random.default_rng(7)
    y, labels = graph.y.clone(), graph.y.numpy()
    y[graph.test] = -1
    if split is not None:
        known = np.random.default_rng(split).permutation(np.nonzero(y.numpy() >= 0)[0])
        parts = np.split(known, [int(0.6 * known.size), int(0.8 * known.size)])
        train, val, test = (torch.from_numpy(np.sort(part)) for part in parts)
        return replace(graph, y=y, train=train, val=val, test=test)
    train, val, test = (part.numpy() for part in (graph.train, graph.val, graph.test))
    unused = np.setdiff1d(np.nonzero(labels >= 0)[0], np.concatenate([train, val, test]))
    if few:
        kept, val = (_per_class(random, p, labels, n) for p, n in ((train, 20), (val, 30)))
        train, unused = kept, np.setdiff1d(train, kept)
    elif not unused.size:
        order = random.permutation(train)
        train, unused = order[order.size // 5 :], order[: order.size // 5]
    parts = train, val, random.permutation(unused)[:MOST_TEST_NODES]
    train, val, test = (torch.from_numpy(np.sort(part)) for part in parts)
    return replace(graph, y=y, train=train, val=val, test=test)


def _per_class(
    random: np.random.Generator, nodes: np.ndarray, labels: np.ndarray, count: int
) -> np.ndarray:
    classes = np.unique(labels[nodes])
    return np.concatenate([random.permutation(nodes[labels[nodes] == c])[:count] for c in classes])


def measured(cell: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """One row: mean accuracy, and that of every condensed graph."""
    dataset, nodes, *rest = cell.split(":")
    settings = {k: parse(v) for k, v in (item.split("=", 1) for item in rest if item != "few")}
    device, split = arguments.device, settings.pop("split", None)
    graph = gcsr.load(dataset, root=arguments.root)
    graph = development(graph, few="few" in rest, split=split)
    small = gcsr.condense_many(
        graph, nodes=int(nodes), seeds=range(GRAPHS), device=device, **settings
    )
    outcome = gcsr.evaluate(small, graph, runs=RUNS, device=device)
    by_graph = np.asarray(outcome.scores).reshape(GRAPHS, RUNS).mean(1)
    row = {
        "cell": cell,
        "mean": float(outcome.mean),
        "graphs": by_graph.tolist(),
        "device": machine_name(pick_device(device)),
        "data": graph.content_hash,
        **{key: small[0].provenance[key] for key in ("settings", "revisions", "versions")},
    }
    print(row, flush=True)
    return [row]


def main() -> None:
    measure_cells(argparse.ArgumentParser(description=__doc__), measured)


if __name__ == "__main__":
    main()
