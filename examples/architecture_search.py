"""Search for an architecture on a condensed graph, beside the same search on the whole one.

    python examples/architecture_search.py                          # digits, needs no download
    python examples/architecture_search.py --data cora --nodes 70 --method auto --trials 40

Two families of the user's own modules and their training settings are searched on the small graph. The
best few are trained on the whole graph. A real search would end there; to see whether it pays, the same
configurations are also trained on the whole graph and on random nodes in as many bytes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn
from torch_geometric.nn.models import GCN, GraphSAGE

import gcsr


def main(argv: Sequence[str] | None = None) -> gcsr.SearchResult:
    """Condense, search and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="digits", help="a dataset's name or a graph file")
    parser.add_argument("--nodes", type=int, default=50, help="condensed nodes")
    parser.add_argument("--method", default="clusters", help="of condensing")
    parser.add_argument("--trials", type=int, default=10, help="configurations")
    parser.add_argument("--epochs", type=int, default=100, help="per network")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a page with plots")
    args = parser.parse_args(argv)
    graph = gcsr.load(args.data)
    small = gcsr.condense(graph, nodes=args.nodes, method=args.method, seed=args.seed)

    def network(trial: Any) -> nn.Module:
        """A module of the user; what is suggested is part of the configuration."""
        kind = {"gcn": GCN, "sage": GraphSAGE}[trial.suggest_categorical("kind", ["gcn", "sage"])]
        width = trial.suggest_int("hidden_channels", 16, 128, log=True)
        depth = trial.suggest_int("num_layers", 1, 3)
        dropout = trial.suggest_float("dropout", 0.0, 0.6)
        return kind(graph.num_features, width, depth, graph.num_classes, dropout=dropout)

    found = gcsr.search(
        small,
        graph,
        network,
        trials=args.trials,
        compare=True,
        sampler="random",  # "tpe" needs Optuna: pip install 'gcsr[tune]'
        recipe=gcsr.TrainingRecipe(epochs=args.epochs, validate_every=10),
        seed=args.seed,
    )
    for name, one in found.rankings.items():
        # There is no rank correlation where all scores are equal.
        tau = "-" if one.tau is None else f"{one.tau:.2f}"
        print(f"{name}: {one.total_seconds:.1f} s, tau {tau}, regret {one.regret:.2f} points")
    print(f"winner: {found.settings}, test accuracy {found.small.test:.1f} %")
    print(found.verdict)
    if args.out is not None:
        args.out.write_text(gcsr.report(found), encoding="utf-8")
    return found


if __name__ == "__main__":
    main()
