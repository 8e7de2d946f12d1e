"""Continual learning: classes arrive in a stream and are remembered as condensed graphs.

    python examples/continual.py                                    # digits, needs no download
    python examples/continual.py --data amazon-computers --bytes 200000

Every task is the part of the graph with a few new classes. When it has passed, its graph is gone; what
stays is a condensed memory of all tasks under a byte budget (``gcsr.Replay``). After every task a fresh
network is trained on the memory and has to tell all classes seen so far apart on test nodes. The same
is done with random real nodes in as many bytes. ``benchmarks/continual.py`` compares more ways.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.nn import GCN

import gcsr


def main(argv: Sequence[str] | None = None) -> dict[str, list[float]]:
    """Accuracy in percent over all classes so far, after every task, by method of the memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="digits", help="a dataset's name or a graph file")
    parser.add_argument("--bytes", type=int, default=10_000, help="of the memory of all tasks")
    parser.add_argument("--classes", type=int, default=2, help="new classes per task")
    parser.add_argument("--methods", default="clusters,random", help="of the memory")
    parser.add_argument("--epochs", type=int, default=200, help="per network")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    graph = gcsr.load(args.data)
    accuracy: dict[str, list[float]] = {}
    for method in args.methods.split(","):
        memory = gcsr.Replay(args.bytes, method=method, seed=args.seed)
        accuracy[method] = []
        for first in range(0, graph.num_classes, args.classes):
            end = min(first + args.classes, graph.num_classes)
            task = graph.subgraph((graph.y >= first) & (graph.y < end))
            seen = graph.subgraph((graph.y >= 0) & (graph.y < end))
            network = train(memory.observe(task), end, args.epochs, args.seed)
            accuracy[method].append(tested(network, seen))
        row = "".join(f"{value:>8.1f}" for value in accuracy[method])
        print(f"{method:<10}{row}   {memory.graph.num_nodes} nodes, {memory.nbytes:,} bytes")
    return accuracy


def train(memory: gcsr.CondensedGraph, classes: int, epochs: int, seed: int) -> GCN:
    """A fresh network of PyG, trained on the memory alone; the last epoch counts."""
    torch.manual_seed(seed)
    data = memory.to_pyg()
    targets = memory.targets[:, :classes]
    network = GCN(data.num_features, 64, num_layers=2, out_channels=classes, dropout=0.5)
    adam = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(epochs):
        adam.zero_grad()
        scores = network(data.x, data.edge_index, edge_weight=data.edge_weight)
        cross_entropy(scores, targets).backward()
        adam.step()
    return network.eval()


@torch.no_grad()
def tested(network: GCN, graph: gcsr.Graph) -> float:
    """Percent of the test nodes of all tasks so far."""
    data = graph.to_pyg()
    right = network(data.x, data.edge_index).argmax(1) == data.y
    return 100 * float(right[data.test_mask].double().mean())


if __name__ == "__main__":
    main()
