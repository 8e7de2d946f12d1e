"""Seconds and peak memory of the automatic mode with its default settings, one graph after the other.

    python benchmarks/seconds.py --root DATA --out results/bench/automatic-h200.json --device cuda \
        cora:70 citeseer:60 pubmed:30 amazon-computers:100 digits:100 amazon-computers:100:rich \
        DATA/graphs/{facebook-pagepage.npz:40,facebook-pagepage.npz:40:rich,actor.npz:50,wordnet.npz:440}

A cell is ``graph:nodes[:rich]`` as in search.py. The first cell includes what a process does once.
Peaks of a CPU are those of the process: name one cell per call for a peak of its own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gcsr
from gcsr.utils.devices import pick_device
from rows import graph_of, measure_cells


def measured(cell: str, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One row."""
    name, nodes, *rest = cell.split(":")
    device = pick_device(arguments.device)
    graph, place = graph_of(name, rest, arguments.root), Path(name).name
    began = time.perf_counter()
    small = gcsr.condense(graph, nodes=int(nodes), device=device)
    wall = time.perf_counter() - began
    made = small.provenance
    print(f"{cell}: {wall:.1f} s", flush=True)
    short = f"{place.removesuffix('.npz')}-rich.npz" if "rich" in rest else place
    yield {
        "cell": f"{short}:{nodes}",
        "seconds": made["measured"]["seconds"],
        "wall_seconds": wall,
        "peak_memory_bytes": made["measured"]["peak_memory_bytes"],
        "plan": made["automatic"]["plan"],
        "chosen": made["automatic"]["chosen"],
        "revisions": made["revisions"],
        "data": graph.content_hash,
    }


if __name__ == "__main__":
    measure_cells(argparse.ArgumentParser(description=__doc__), measured)
