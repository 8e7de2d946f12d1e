"""Plain PyG networks on ``to_pyg()`` of condensed graphs, beside the same loop on the whole graph.

Run: ``python benchmarks/pyg_models.py``. It prints a table and writes ``results/pyg-models.json``. The
loop knows nothing of this library: unweighted layers, Adam, early stopping by validation accuracy.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout
from torch_geometric.data import Data
from torch_geometric.nn import (
    APPNP,
    ChebConv,
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    SAGEConv,
    TransformerConv,
)

import gcsr

HIDDEN, HEADS, EPOCHS, EVERY, PATIENCE = 64, 8, 100, 5, 10
GRAPHS = {"digits": 50, "cora": 70}
METHODS = ("auto", "gcsr", "bilevel")


class TwoLayers(nn.Module):
    """Two convolutions with dropout between them."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Class scores."""
        x = dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.second(x, edge_index)


class Propagated(nn.Module):
    """A perceptron whose scores are propagated."""

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.perceptron, self.propagate = perceptron(inputs, classes), APPNP(10, 0.1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Class scores."""
        return self.propagate(self.perceptron(x), edge_index)


def perceptron(inputs: int, outputs: int) -> nn.Module:
    """One hidden layer."""
    return nn.Sequential(nn.Linear(inputs, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, outputs))


def networks(d: int, c: int) -> dict[str, Callable[[], nn.Module]]:
    """Eight architectures for ``d`` features and ``c`` classes."""
    h, each = HIDDEN, HIDDEN // HEADS
    return {
        "GCN": lambda: TwoLayers(GCNConv(d, h), GCNConv(h, c)),
        "GAT": lambda: TwoLayers(GATConv(d, each, HEADS), GATConv(h, c)),
        "GATv2": lambda: TwoLayers(GATv2Conv(d, each, HEADS), GATv2Conv(h, c)),
        "GIN": lambda: TwoLayers(GINConv(perceptron(d, h)), GINConv(perceptron(h, c))),
        "SAGE": lambda: TwoLayers(SAGEConv(d, h), SAGEConv(h, c)),
        "APPNP": lambda: Propagated(d, c),
        "ChebConv": lambda: TwoLayers(ChebConv(d, h, 2), ChebConv(h, c, 2)),
        "TransformerConv": lambda: TwoLayers(
            TransformerConv(d, each, HEADS), TransformerConv(h, c)
        ),
    }


def train(make: Callable[[], nn.Module], data: Data, real: Data, seed: int) -> float:
    """Test accuracy in percent at the epoch that validates best."""
    torch.manual_seed(seed)
    model = make()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    targets = data.y_soft if "y_soft" in data else data.y
    best, test, waited = -1.0, 0.0, 0
    for epoch in range(1, EPOCHS + 1):
        model.train()
        optimizer.zero_grad()
        scores = model(data.x, data.edge_index)[data.train_mask]
        cross_entropy(scores, targets[data.train_mask]).backward()
        optimizer.step()
        if epoch % EVERY:
            continue
        model.eval()
        with torch.no_grad():
            right = model(real.x, real.edge_index).argmax(1) == real.y
        validation = right[real.val_mask].double().mean().item()
        waited += 1
        if validation > best:
            best, test, waited = validation, right[real.test_mask].double().mean().item(), 0
        if waited == PATIENCE:
            break
    return 100 * test


def condensed(graph: gcsr.Graph, method: str, folder: Path | None) -> gcsr.CondensedGraph:
    """The condensed graph, read from ``folder`` where it is there."""
    path = None if folder is None else folder / f"{graph.name}-{method}.safetensors"
    if path is not None and path.exists():
        return gcsr.CondensedGraph.load(path)
    made = gcsr.condense(graph, nodes=GRAPHS[graph.name], method=method, device="cpu")
    if path is not None:
        made.save(path)
    return made


def main() -> None:
    """Print the tables and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", help="folder of the datasets' files")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS))
    parser.add_argument("--condensed", type=Path, help="folder of condensed graphs to reuse")
    parser.add_argument("--out", type=Path, default=Path("results/pyg-models.json"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    command = "python benchmarks/pyg_models.py"
    found = {"command": command, "version": gcsr.__version__, "runs": args.runs, "rows": rows}
    for name in args.graphs:
        graph = gcsr.load(name, root=args.root)
        real = graph.to_pyg()
        made = {method: condensed(graph, method, args.condensed) for method in METHODS}
        inputs = {"whole graph": real} | {method: one.to_pyg() for method, one in made.items()}
        inputs["gcsr, every entry of A'"] = made["gcsr"].to_pyg(threshold=0)
        print(f"\n{name}, {GRAPHS[name]} nodes, {args.runs} runs\n")
        print("| network | " + " | ".join(inputs) + " |")
        print("|---" * (len(inputs) + 1) + "|")
        for network, make in networks(graph.num_features, graph.num_classes).items():
            cells = []
            for trained_on, data in inputs.items():
                scores = [train(make, data, real, seed) for seed in range(args.runs)]
                cells.append(f"{statistics.mean(scores):.1f} ± {statistics.pstdev(scores):.1f}")
                rows.append(
                    {
                        "dataset": name,
                        "nodes": data.num_nodes,
                        "edges": data.num_edges,
                        "trained_on": trained_on,
                        "network": network,
                        "scores": scores,
                    }
                )
            print(f"| {network} | " + " | ".join(cells) + " |", flush=True)
            args.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
