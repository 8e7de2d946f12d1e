"""How long coarsening a large real structure takes, and how much memory.

    python benchmarks/coarsening.py ogbn-arxiv.structure.npz --nodes 454 --width 128

Features are stand-ins (see standin.py): only seconds and bytes mean anything. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from gcsr import Coarsening
from gcsr.utils.devices import peak_memory_bytes, pick_device
from standin import standin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("structure", type=Path)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--width", type=int, default=128)
    arguments = parser.parse_args()
    graph = standin(arguments.structure, arguments.width, noise=6.0, seed=0)
    cpu = pick_device("cpu")
    before = peak_memory_bytes(cpu)
    began = time.perf_counter()
    small = Coarsening(nodes=arguments.nodes).condense(graph, device=cpu)
    seconds = time.perf_counter() - began
    told = small.describe()
    print(
        json.dumps(
            {
                "graph": arguments.structure.name,
                "nodes": graph.num_nodes,
                "edges": graph.num_edges,
                "condensed_nodes": small.num_nodes,
                "seconds": round(seconds, 1),
                "peak_rss_gib": round(peak_memory_bytes(cpu) / 2**30, 2),
                "rss_gib_before": round(before / 2**30, 2),
                "nodes_by_level": told["provenance"]["nodes_by_level"],
                "unlabeled_nodes": told["unlabeled_nodes"],
                "nodes_per_class": told["nodes_per_class"],
                "notes": told["provenance"]["notes"],
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
