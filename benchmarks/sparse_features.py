"""The default mode on sparse features and on the same features unfolded: seconds, peak memory, X'.

    python benchmarks/sparse_features.py --out results/bench/sparse-features-cpu.json \
        cora:70:sparse cora:70:dense graphs/facebook-pagepage.npz:40:sparse:rich

A cell is ``graph:nodes:sparse|dense[:rich]``; rich: 60/20/20 % of the labeled nodes. The peak is that
of the whole process: every cell runs in a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from dataclasses import replace
from typing import Any

import torch

import gcsr
from gcsr.auto.update import content_hash
from gcsr.utils.devices import peak_memory_bytes, pick_device
from rows import graph_of, measure_cells


def measured(cell: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """One row, from a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        row = pool.apply(condensed, (cell, arguments.root, arguments.device))
    print(f"{cell}: {row['cpu_seconds']:.1f} s, {row['peak_bytes'] / 2**30:.2f} GiB", flush=True)
    return [row]


def condensed(cell: str, root: str | None, device_name: str) -> dict[str, Any]:
    """The row of a cell."""
    name, nodes, layout, *rest = cell.split(":")
    device = pick_device(device_name)
    graph = graph_of(name, rest, root)
    sparse = graph.x.layout == torch.sparse_csr
    if sparse != (layout == "sparse"):
        graph = replace(graph, x=graph.x.to_dense() if sparse else graph.x.to_sparse_csr())
    began, cpu = time.perf_counter(), time.process_time()
    small = gcsr.condense(graph, nodes=int(nodes), device=device)
    return {
        "cell": f"{cell} {device.type}",
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
        "peak_bytes": peak_memory_bytes(torch.device("cpu")),
        "graph": content_hash(small),
        "plan": small.provenance["automatic"]["plan"],
        "validation": [one["validation"] for one in small.provenance["automatic"]["candidates"]],
        "data": graph.content_hash,
    }


if __name__ == "__main__":
    measure_cells(argparse.ArgumentParser(description=__doc__), measured)
