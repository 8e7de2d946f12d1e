"""Graphs of growing size, generated, condensed and tested on disk: time and memory of every stage."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from benchmarks.speed.planted import Planted
from benchmarks.speed.stages import Stopwatch
from gcsr.api import condense
from gcsr.data.graph import Graph
from gcsr.data.stored_graph import StoredGraph, open_folder
from gcsr.evaluation.protocol import evaluate
from gcsr.training.fit import TrainingRecipe
from gcsr.utils.errors import InputError, require, require_one_of
from gcsr.utils.progress import Progress, silent

SIZES = (100_000, 1_000_000, 10_000_000)
# Enough for the features of the largest size to be mapped whole; less means more reading.
MEMORY = 6 * 2**30
CONDENSED, RUNS = 200, 2
STAGES = {
    "auto": ("generate", "propagate", "starts", "bilevel", "compare", "evaluate"),
    "gcsr": ("generate", "propagate", "experts", "prior", "condense", "evaluate"),
}
# By the first words of what work reports; longer words first.
REPORTED = {
    "generating": "generate",
    "propagating": "propagate",
    "training experts": "experts",
    "asking experts": "prior",
    "counting edges": "prior",
    "training pseudo": "starts",
    "training gcn pseudo": "starts",
    "starts": "starts",
    "comparing": "compare",
    "training": "evaluate",
    "testing": "evaluate",
}
# Features, two hops of them, scores of the test nodes, and edges while they are sorted.
DISK_PER_NODE = 1200


@dataclass(frozen=True)
class ScaleRow:
    """One stage at growing sizes; ``exponent`` is the slope of the logarithms of its seconds."""

    what: str
    sizes: list[int]
    edges: list[int]
    seconds: list[float]
    cpu_seconds: list[float]
    peak_bytes: list[int]
    exponent: float | None
    cpu_exponent: float | None
    fixed: str
    accuracies: list[float]
    method: str
    in_memory: bool
    device: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"bench": "scale", **asdict(self)}


def bench_scale(
    sizes: Sequence[int] = SIZES,
    *,
    method: str = "auto",
    device: str = "cpu",
    in_memory: bool = False,
    memory: int = MEMORY,
    folder: Path | None = None,
    progress: Progress = silent,
) -> list[ScaleRow]:
    """A row per stage and one for all; every size in a fresh process, so that peaks are its own.

    Half of the nodes have labels for ``auto``, few for ``gcsr``. ``in_memory`` reads every graph into
    memory first.
    """
    require_one_of("--method", method, STAGES)
    smallest = 50 * Planted(1).classes
    for nodes in sizes:
        require(nodes >= smallest, f"--nodes: {nodes} is not accepted; {smallest} or more are.")
    found = []
    for done, nodes in enumerate(sizes):
        progress("bench scale", done, len(sizes))
        how = {"method": method, "device": device, "in_memory": in_memory, "memory": memory}
        found.append(_in_a_process(nodes, how, folder))
    progress("bench scale", len(sizes), len(sizes))
    return _rows(found, how)


def measure(
    nodes: int, folder: Path, *, method: str, device: str, in_memory: bool, memory: int
) -> dict[str, Any]:
    """Everything from nothing to accuracies at one size, in this process."""
    middle, last = ("bilevel", "compare") if method == "auto" else ("condense", "condense")
    watch = Stopwatch({"condensing": middle, **REPORTED})
    path = Planted(nodes, rich=method == "auto").write(folder / "graph", progress=watch)
    watch.end("generate")
    graph: Graph = open_folder(path, memory=memory)
    if in_memory:
        graph = cast("StoredGraph", graph).to_memory()
    watch.end("generate")
    small = condense(graph, nodes=CONDENSED, method=method, device=device, progress=watch)
    watch.end(last)
    result = evaluate(
        small,
        graph,
        runs=RUNS,
        recipe=TrainingRecipe(validate_every=10),
        device=device,
        progress=watch,
    )
    watch.end("evaluate")
    return {
        "nodes": nodes,
        "edges": graph.num_edges,
        "accuracy": result.mean,
        "threads": torch.get_num_threads(),
        "stages": {name: stage.to_dict() for name, stage in watch.stages.items()},
    }


def _in_a_process(nodes: int, how: dict[str, Any], folder: Path | None) -> dict[str, Any]:
    place = folder or Path(tempfile.gettempdir())
    wanted, free = DISK_PER_NODE * nodes, shutil.disk_usage(place).free
    require(
        wanted < free,
        f"--nodes: {nodes} take about {wanted:,} bytes of disk, and {place} has {free:,}; name another"
        " folder with --root.",
    )
    with tempfile.TemporaryDirectory(dir=place, prefix="gcsr-scale-") as temporary:
        program = "import sys; from benchmarks.speed.scale import main; main(*sys.argv[1:])"
        done = subprocess.run(
            [sys.executable, "-c", program, str(nodes), temporary, json.dumps(how)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            check=False,
        )
    if done.returncode:
        raise InputError(f"bench: {nodes} nodes ended with exit code {done.returncode}.")
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def main(nodes: str, folder: str, how: str) -> None:
    """What runs in a fresh process: one size, its measurements as JSON."""
    print(json.dumps(measure(int(nodes), Path(folder), **json.loads(how))))


def _rows(found: Sequence[dict[str, Any]], how: dict[str, Any]) -> list[ScaleRow]:
    planted, method = Planted(1), how["method"]
    accuracies = ", ".join(f"{one['accuracy']:.1f}" for one in found)
    where = "in memory" if how["in_memory"] else f"blocks of {how['memory']:,} bytes"
    fixed = (
        f"planted partition: {planted.edges} edges per node, {planted.features} features,"
        f" {planted.classes} classes, {'half of the' if method == 'auto' else 'few'} nodes labeled;"
        f" {where}; {found[0]['threads']} threads; condensed to {CONDENSED} by {method}, {RUNS} GCNs"
        f" tested: {accuracies} %"
    )
    rows = []
    nothing = {"seconds": 0.0, "cpu_seconds": 0.0, "peak_bytes": 0}
    for name in (*STAGES[method], "total"):
        # In memory nothing is propagated beforehand.
        stages = [
            list(one["stages"].values()) if name == "total" else [one["stages"].get(name, nothing)]
            for one in found
        ]
        seconds, cpu = (
            [sum(stage[key] for stage in each) for each in stages]
            for key in ("seconds", "cpu_seconds")
        )
        sizes = [one["nodes"] for one in found]
        rows.append(
            ScaleRow(
                what=name,
                sizes=sizes,
                edges=[one["edges"] for one in found],
                seconds=seconds,
                cpu_seconds=cpu,
                peak_bytes=[max(int(stage["peak_bytes"]) for stage in each) for each in stages],
                exponent=_slope(sizes, seconds),
                cpu_exponent=_slope(sizes, cpu),
                fixed=fixed,
                accuracies=[one["accuracy"] for one in found],
                method=method,
                in_memory=how["in_memory"],
                device=how["device"],
            )
        )
    return rows


def _slope(sizes: Sequence[int], values: Sequence[float]) -> float | None:
    if len(sizes) < 2 or min(values) <= 0:
        return None
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
