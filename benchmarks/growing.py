"""Updates of a growing graph beside condensing anew: seconds and accuracy of every step.

    python benchmarks/growing.py --out results/growing/all.json ../shared/data/graphs/wordnet.npz:440

A cell is ``graph:nodes[:rich]``. A random tenth of the nodes is withheld and comes back in three steps
with its edges and labels; then the same for the largest class, which comes back in one step. Every step
updates the graph of the step before. ``--seeds`` graphs, one GCN of the test protocol per ``--runs``
each. Seconds are those of warm calls: on CUDA the first condensation of a process is not counted.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import gcsr
from gcsr.utils.devices import pick_device
from rows import graph_of, measure_cells

WITHHELD, STEPS = 0.1, 3


def measured(cell: str, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row per step: seconds and accuracy of the update and of condensing anew."""
    name, nodes, *rest = cell.split(":")
    device, seeds = pick_device(arguments.device), range(arguments.seeds)
    graph = graph_of(name, rest, arguments.root)

    def condensed(now: gcsr.Graph) -> list[gcsr.CondensedGraph]:
        return [gcsr.condense(now, nodes=int(nodes), seed=seed, device=device) for seed in seeds]

    def outcome(small: list[gcsr.CondensedGraph], now: gcsr.Graph) -> dict[str, Any]:
        found = gcsr.evaluate(small, now, runs=arguments.runs, device=device)
        seconds = [one.provenance["measured"]["seconds"] for one in small]
        return {
            **found.to_dict(),
            "graphs": len(small),
            "condense_seconds": float(np.mean(seconds)),
        }

    if device.type == "cuda":
        gcsr.condense(graph, nodes=int(nodes), device=device)
    for kind in arguments.kinds.split(","):
        states = KINDS[kind](graph)
        small = condensed(states[0])
        for step, now in enumerate(states[1:], 1):
            small = [
                gcsr.update(one, now, seed=seed, device=device)
                for one, seed in zip(small, seeds, strict=True)
            ]
            updated, anew = outcome(small, now), outcome(condensed(now), now)
            ratio = updated["condense_seconds"] / anew["condense_seconds"]
            print(
                f"{cell} {kind} {step}: updated {updated['mean']:.1f} in"
                f" {updated['condense_seconds']:.1f} s, anew {anew['mean']:.1f} in"
                f" {anew['condense_seconds']:.1f} s, {100 * ratio:.0f} %",
                flush=True,
            )
            yield {
                "cell": f"{cell} {kind} {step} {device.type}",
                "updated": updated,
                "anew": anew,
                "ratio_of_seconds": ratio,
                "nodes": now.num_nodes,
                "update": small[0].provenance["update"],
                "data": now.content_hash,
            }


def _by_nodes(graph: gcsr.Graph) -> list[gcsr.Graph]:
    """A tenth of the nodes is missing, two thirds of it, one third, nothing."""
    order = np.random.default_rng(0).permutation(graph.num_nodes)
    missing = [round(WITHHELD * graph.num_nodes * left / STEPS) for left in range(STEPS, 0, -1)]
    return [*(graph.subgraph(order[count:]) for count in missing), graph]


def _by_class(graph: gcsr.Graph) -> list[gcsr.Graph]:
    """The class with the most training nodes is missing, then not."""
    largest = int(torch.bincount(graph.y[graph.train]).argmax())
    return [graph.subgraph(graph.y != largest), graph]


KINDS = {"nodes": _by_nodes, "class": _by_class}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--kinds", default=",".join(KINDS), help="what is added")
    measure_cells(parser, measured)


if __name__ == "__main__":
    main()
