"""Predicted against measured break-even: ``condense --estimate`` beside the cost sheet of the result.

    python benchmarks/break_even.py --out results/break-even/all.json digits:100 cora:70 \
        wordnet.npz:440 facebook-pagepage.npz:40:rich actor.npz:50

A cell is ``graph:nodes[:rich]`` as in search.py. Condensing is measured in a warm process.
"""

from __future__ import annotations

import argparse
from typing import Any

import gcsr
from gcsr.api import make_condenser
from gcsr.evaluation.forecast import forecast
from gcsr.utils.devices import pick_device
from rows import graph_of, measure_cells


def measured(cell: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """One row: what was predicted, what was measured, and their ratio."""
    name, nodes, *rest = cell.split(":")
    device, runs = pick_device(arguments.device), arguments.runs
    graph = graph_of(name, rest, arguments.root)
    condenser, _ = make_condenser(
        graph, nodes=int(nodes), ratio=None, method=arguments.method, preset="default", settings={}
    )
    ahead = forecast(condenser, graph, device, runs=runs)
    small = condenser.condense(graph, device=device)
    if device.type == "cuda":  # the first condensation of a process also loads kernels
        small = condenser.condense(graph, seed=1, device=device)
    sheet = gcsr.cost(small, graph, runs=runs, sparsify="none", device=device)
    both = (ahead.paid_after, sheet.paid_after)
    ratio = None if None in both else both[0] / both[1]
    print(f"{cell}: predicted {both[0]}, measured {both[1]}, ratio {ratio}", flush=True)
    print(f"  {ahead.sentence}\n  {sheet.decision}", flush=True)
    return [
        {
            "cell": f"{cell} {device.type}",
            "predicted": ahead.to_dict(),
            "measured": {
                key: getattr(sheet, key)
                for key in ("condense_seconds", "evaluation_seconds", "paid_after", "decision")
            }
            | {"small_seconds": sheet.condensed.seconds, "whole_seconds": sheet.whole.seconds},
            "ratio": ratio,
            "revisions": small.provenance["revisions"],
            "data": graph.content_hash,
        }
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--runs", type=int, default=2)
    measure_cells(parser, measured)


if __name__ == "__main__":
    main()
