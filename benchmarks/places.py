"""The default mode in memory, on disk and on a Ray cluster: seconds and a hash of the condensed graph.

    python benchmarks/places.py ogbn-arxiv.structure.npz --nodes 454 --out places.json \
        memory disk cluster killed

The features are stand-ins (``standin.py``). ``cluster`` has two nodes of one core each on the loopback
interface; ``killed`` kills a worker in the middle of the outer steps. All hashes must be equal.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import gcsr
from gcsr.auto.update import content_hash
from gcsr.data.folder import write_folder
from gcsr.data.stored_graph import open_folder
from gcsr.utils.devices import machine_name, pick_device
from rows import measure_cells
from standin import standin

# Ray reads these when it is imported.
RAY = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": "0" * 64,
}


def measured(place: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """One row."""
    graph = standin(arguments.structure, 128, noise=6.0, seed=0)
    asked: dict[str, Any] = {"nodes": arguments.nodes, "device": "cpu"}
    if arguments.iterations is not None:
        asked["iterations"] = arguments.iterations
    killed: list[int] = []

    def kill(stage: str, done: int, total: int) -> None:
        if place == "killed" and stage == "condensing" and not killed:
            killed.append(min(workers()))
            os.kill(killed[0], signal.SIGKILL)

    with ExitStack() as stack:
        source: Any = graph
        if place != "memory":
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "graph"
            write_folder(graph, folder)
            source = open_folder(folder, memory=arguments.memory * 2**20)
        if place in ("cluster", "killed"):
            asked["cluster"] = two_nodes(stack)
        began = time.perf_counter()
        small = gcsr.condense(source, progress=kill, **asked)
        seconds = time.perf_counter() - began
    print(f"{place}: {seconds:.1f} s, {content_hash(small)[:16]}", flush=True)
    return [
        {
            "cell": f"{arguments.structure.name}:{arguments.nodes} {place}",
            "seconds": seconds,
            "graph": content_hash(small),
            "killed_workers": len(killed),
            "memory_mib": None if place == "memory" else arguments.memory,
            "iterations": arguments.iterations,
            "machine": machine_name(pick_device("cpu")),
            "data": graph.content_hash,
        }
    ]


def two_nodes(stack: ExitStack) -> str:
    """The address of a cluster of two nodes on this machine."""
    for name, value in RAY.items():
        os.environ.setdefault(name, value)
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - an extra

    size: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 1200 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args=size | {"include_dashboard": False})
    stack.callback(cluster.shutdown)
    cluster.add_node(**size)
    return str(cluster.address)


def workers() -> list[int]:
    """Ray workers below this process that are at a unit of work."""
    parents, titles = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            titles[int(folder.name)] = (folder / "cmdline").read_bytes()
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rpartition(")")[2].split()[1]
            )
        except OSError:
            continue
    found = []
    for process in parents:
        above = process
        while above in parents and above != os.getpid():
            above = parents[above]
        if titles[process].startswith(b"ray::execute") and above == os.getpid():
            found.append(process)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("structure", type=Path)
    parser.add_argument("--nodes", type=int, default=454)
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--memory", type=int, default=40, help="MiB for a graph on disk")
    measure_cells(parser, measured)


if __name__ == "__main__":
    main()
