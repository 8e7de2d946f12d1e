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
from typing import Any

import numpy as np
import torch

from benchmarks.speed.planted import Planted
from benchmarks.speed.stages import Stopwatch
from gcsr.data.stored_graph import open_folder
from gcsr.evaluation.protocol import evaluate
from gcsr.methods.gcsr import GCSR
from gcsr.training.fit import TrainingRecipe
from gcsr.utils.errors import InputError, require
from gcsr.utils.progress import Progress, silent

SIZES = (100_000, 1_000_000, 10_000_000)
# Enough for the features of the largest size to be mapped whole; less means more reading.
MEMORY = 6 * 2**30
CONDENSED, RUNS = 200, 2
STAGES = ("generate", "propagate", "experts", "prior", "condense", "evaluate")
# By the first words of what work reports; longer words first.
REPORTED = {
    "generating": "generate",
    "propagating": "propagate",
    "training experts": "experts",
    "asking experts": "prior",
    "counting edges": "prior",
    "condensing": "condense",
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
    device: str = "cpu"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"bench": "scale", **asdict(self)}


def bench_scale(
    sizes: Sequence[int] = SIZES,
    *,
    memory: int = MEMORY,
    folder: Path | None = None,
    progress: Progress = silent,
) -> list[ScaleRow]:
    """A row per stage and one for all; every size in a fresh process, so that peaks are its own."""
    smallest = 50 * Planted(1).classes
    for nodes in sizes:
        require(nodes >= smallest, f"--nodes: {nodes} is not accepted; {smallest} or more are.")
    found = []
    for done, nodes in enumerate(sizes):
        progress("bench scale", done, len(sizes))
        found.append(_in_a_process(nodes, memory, folder))
    progress("bench scale", len(sizes), len(sizes))
    return _rows(found, memory)


def measure(nodes: int, memory: int, folder: Path) -> dict[str, Any]:
    """Everything from nothing to accuracies at one size, in this process."""
    watch = Stopwatch(REPORTED)
    path = Planted(nodes).write(folder / "graph", progress=watch)
    watch.end("generate")
    graph = open_folder(path, memory=memory)
    watch.end("generate")
    condenser = GCSR(nodes=CONDENSED)
    small = condenser.condense(graph, seed=0, device="cpu", progress=watch)
    watch.end("condense")
    result = evaluate(
        small,
        graph,
        runs=RUNS,
        recipe=TrainingRecipe(validate_every=10),
        device="cpu",
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


def _in_a_process(nodes: int, memory: int, folder: Path | None) -> dict[str, Any]:
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
            [sys.executable, "-c", program, str(nodes), str(memory), temporary],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            check=False,
        )
    if done.returncode:
        raise InputError(f"bench: {nodes} nodes ended with exit code {done.returncode}.")
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def main(nodes: str, memory: str, folder: str) -> None:
    """What runs in a fresh process: one size, its measurements as JSON."""
    print(json.dumps(measure(int(nodes), int(memory), Path(folder))))


def _rows(found: Sequence[dict[str, Any]], memory: int) -> list[ScaleRow]:
    planted = Planted(1)
    accuracies = ", ".join(f"{one['accuracy']:.1f}" for one in found)
    fixed = (
        f"planted partition: {planted.edges} edges per node, {planted.features} features,"
        f" {planted.classes} classes; blocks of {memory:,} bytes; {found[0]['threads']} threads;"
        f" condensed to {CONDENSED} by gcsr, {RUNS} GCNs tested: {accuracies} %"
    )
    rows = []
    for name in (*STAGES, "total"):
        stages = [
            list(one["stages"].values()) if name == "total" else [one["stages"][name]]
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
            )
        )
    return rows


def _slope(sizes: Sequence[int], values: Sequence[float]) -> float | None:
    if len(sizes) < 2 or min(values) <= 0:
        return None
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
