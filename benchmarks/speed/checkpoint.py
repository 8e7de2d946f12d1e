"""What checkpoints cost: the same run with and without them, and the seconds spent writing."""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.speed.cases import Case
from benchmarks.speed.row import synchronize
from benchmarks.speed.standin import graph_of
from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.methods.gcsr import GCSR
from gcsr.training.obtain_experts import forget_experts
from gcsr.utils.checkpoint import Checkpoint
from gcsr.utils.errors import require
from gcsr.utils.parallel import single_threaded
from gcsr.utils.progress import Progress, silent

EXPERTS = 4
REPEATS = 3
# A Planetoid graph: the smaller a run, the more a state weighs.
DEFAULT = ("cora-70",)


@dataclass(frozen=True)
class CheckpointRow:
    """Seconds of a run with and without checkpoints, taken in turns.

    ``writing_share`` is the time spent writing over the time of the run it belongs to; ``overhead``
    compares medians of whole runs, in which the noise of the machine is too.
    """

    case: str
    device: str
    iterations: int
    repeats: int
    seconds_without: float
    seconds_with: float
    writes: float
    writing_seconds: float
    writing_share: float
    state_bytes: int
    same_bytes: bool
    note: str
    bench: str = "checkpoint"

    @property
    def overhead(self) -> float:
        """How much longer the run with checkpoints took, as a share."""
        return self.seconds_with / self.seconds_without - 1

    def to_dict(self) -> dict[str, Any]:
        """Plain values, the overhead included."""
        return {**asdict(self), "overhead": self.overhead}


def bench_checkpoint(
    name: str,
    shape: Case,
    device: torch.device,
    *,
    repeats: int = REPEATS,
    fraction: float = 1.0,
    root: Path | None = None,
    progress: Progress = silent,
) -> CheckpointRow:
    """Condense one graph by turns with and without checkpoints; experts are trained once before."""
    require(0 < fraction <= 1, f"fraction: {fraction} is not accepted; above 0 up to 1 is.")
    graph, origin = graph_of(shape, root)
    iterations = max(1, round(fraction * int(shape.settings["iterations"])))
    settings = {**shape.settings, "iterations": iterations, "experts": EXPERTS}
    condenser = GCSR(nodes=shape.nodes, **settings)
    without: list[float] = []
    written: list[_Run] = []
    # Experts are the same for all and found again by each.
    forget_experts()
    with single_threaded():
        plain = _timed(condenser, graph, device, None)
        for done in range(repeats):
            progress("bench checkpoint", done, repeats)
            plain = _timed(condenser, graph, device, None)
            without.append(plain.seconds)
            with tempfile.TemporaryDirectory() as folder:
                kept = Checkpoint(Path(folder) / "state", keep=True)
                written.append(_timed(condenser, graph, device, kept))
    progress("bench checkpoint", repeats, repeats)
    forget_experts()
    return CheckpointRow(
        case=name,
        device=device.type,
        iterations=iterations,
        repeats=repeats,
        seconds_without=median(without),
        seconds_with=median(run.seconds for run in written),
        writes=median(run.writes for run in written),
        writing_seconds=median(run.writing for run in written),
        writing_share=median(run.writing / run.seconds for run in written),
        state_bytes=max(run.nbytes for run in written),
        same_bytes=all(_same(run.made, plain.made) for run in written),
        note=f"{origin}; one graph of {shape.nodes} nodes, {iterations} iterations, experts trained"
        " before the clock started",
    )


@dataclass(frozen=True, eq=False)
class _Run:
    seconds: float
    writes: int
    writing: float
    nbytes: int
    made: CondensedGraph


def _timed(
    condenser: GCSR, graph: Graph, device: torch.device, checkpoint: Checkpoint | None
) -> _Run:
    synchronize(device)
    began = time.perf_counter()
    made = condenser.condense(graph, device=device, checkpoint=checkpoint)
    synchronize(device)
    seconds = time.perf_counter() - began
    if checkpoint is None:
        return _Run(seconds, 0, 0.0, 0, made)
    told = made.provenance["measured"]["checkpoints"]
    nbytes = sum(path.stat().st_size for path in checkpoint.path.glob("*.part"))
    return _Run(seconds, told["written"], told["seconds"], nbytes, made)


def _same(one: CondensedGraph, other: CondensedGraph) -> bool:
    return torch.equal(one.x, other.x) and torch.equal(one.adjacency, other.adjacency)
