"""Architecture search on a condensed graph, on random nodes in as many bytes, and on the whole graph.

    python benchmarks/search.py --out results/search/all.json cora:70 wordnet.npz:440 \
        facebook-pagepage.npz:40:rich

A cell is ``graph:nodes[:rich]``; rich: 60/20/20 % of the labeled nodes. Configurations
are drawn from the default space by the seed. Every search is warmed up and counts its own preparation.
"""

from __future__ import annotations

import argparse
from typing import Any

import gcsr
from gcsr.utils.devices import pick_device
from rows import graph_of, measure_cells


def measured(cell: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """One row: the whole result and its totals."""
    name, nodes, *rest = cell.split(":")
    device = pick_device(arguments.device)
    graph = graph_of(name, rest, arguments.root)
    small = gcsr.condense(graph, nodes=int(nodes), method=arguments.method, device=device)
    settings = {"model": arguments.models} if arguments.models else {}
    how: dict[str, Any] = {"compare": True, "sampler": "random", "device": device, **settings}
    warm = gcsr.TrainingRecipe(epochs=25, validate_every=10)
    gcsr.search(small, graph, trials=2, finalists=1, runs=1, recipe=warm, **how)
    recipe = gcsr.TrainingRecipe(epochs=arguments.epochs, validate_every=10)
    found = gcsr.search(
        small, graph, trials=arguments.trials, runs=arguments.runs, recipe=recipe, **how
    )
    print(f"{cell}: {found.verdict}", flush=True)
    return [
        {
            "cell": f"{cell} {device.type}",
            **found.to_dict(),
            "data": graph.content_hash,
            **{key: small.provenance[key] for key in ("revisions", "settings")},
        }
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--models", default="", help="a,b,c; by default those of the space")
    measure_cells(parser, measured)


if __name__ == "__main__":
    main()
