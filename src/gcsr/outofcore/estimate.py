"""Estimates of time, memory and disk of a condensation, from counts."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from gcsr.data.graph import Graph
from gcsr.data.stored_graph import (
    FEATURE_COPIES,
    SCRATCH_VARIABLE,
    StoredGraph,
    feature_numbers,
    in_memory_bytes,
)
from gcsr.data.views import (
    ALWAYS_TRAINED,
    ALWAYS_VALIDATED,
    MOST_TRAINED,
    MOST_VALIDATED,
    most_rows,
)
from gcsr.utils.devices import free_memory_bytes
from gcsr.utils.errors import require

# Multiplications and additions per second on one core of an ordinary server.
GATHERED, DENSE = 5e8, 5e9
# Epochs and hidden units of a quickly trained network, and seconds of a step however small it is.
QUICK_EPOCHS, QUICK_CHANNELS, CALL_SECONDS = 200, 256, 5e-4
# Python and its libraries, with what they reserve for the first training.
GROUND_BYTES = 400 * 10**6
# Labels twice, the scale of every node, its predicted class, and marks.
NODE_BYTES = 40


@dataclass(frozen=True)
class Work:
    """What time and memory depend on.

    ``nodes`` of the condensed graph, ``hops`` over the real one, ``experts`` that also predict every
    node, student ``steps`` per iteration, networks that are quickly trained on the condensed graph
    (``comparisons``), ``real_epochs`` of a GCN on the real graph, ``least`` seconds in any case, and
    bytes that are ``held`` while the features are in memory once. Rows may be ``clustered``, and the
    neighborhoods of ``outer_nodes`` be kept as minibatches.
    """

    nodes: int
    hops: int = 0
    experts: int = 0
    expert_epochs: int = 0
    iterations: int = 0
    steps: int = 0
    hidden_channels: int = 256
    comparisons: int = 0
    real_epochs: int = 0
    least: float = 0.0
    held: int = 0
    clustered: bool = False
    outer_nodes: int = 0


@dataclass(frozen=True)
class Estimate:
    """Seconds on one core (an order of magnitude), bytes of memory, and bytes of disk on top."""

    seconds: float
    memory_bytes: int
    disk_bytes: int
    in_blocks: bool
    disk_folder: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def require_room(self) -> None:
        """Refuse what does not fit into memory or on the disk."""
        free = free_memory_bytes(torch.device("cpu"))
        helps = (
            "load it with a smaller memory=BYTES"
            if self.in_blocks
            else "convert the graph to a folder (gcsr convert) and load it with a smaller memory=BYTES"
        )
        require(
            self.memory_bytes <= free,
            f"memory: this takes about {_gib(self.memory_bytes)}, and {_gib(free)} are free; {helps}.",
        )
        if self.disk_bytes:
            asked = Path(self.disk_folder)
            folder = next(one for one in (asked, *asked.parents) if one.exists())
            room = shutil.disk_usage(folder).free
            require(
                self.disk_bytes <= room,
                f"disk: this takes about {_gib(self.disk_bytes)} in {self.disk_folder}, and"
                f" {_gib(room)} are free; name another folder with {SCRATCH_VARIABLE}.",
            )


def estimate(graph: Graph, work: Work) -> Estimate:
    """Time, memory and disk of condensing a graph, in memory or in blocks as it was opened."""
    nodes, width, classes = graph.num_nodes, graph.num_features, graph.num_classes
    entries = graph.num_edges + nodes
    train, val = int(graph.train.numel()), int(graph.val.numel())
    degree = entries / nodes
    val = MOST_VALIDATED if val > ALWAYS_VALIDATED else val
    reached = min(nodes, int(val * degree))
    small = work.nodes * work.nodes * (work.nodes + width) * 4
    seconds = work.least + (
        sum(entries * (feature_numbers(graph, hop) + 1) for hop in range(work.hops)) / GATHERED
        + work.experts * (work.expert_epochs * train * 3 + nodes) * width * classes / DENSE
        + work.iterations
        * (small + work.steps * work.nodes * width * work.hidden_channels * 12)
        / DENSE
        + entries / GATHERED
    )
    if work.comparisons:
        epoch = work.nodes * width * QUICK_CHANNELS * 3 / DENSE + CALL_SECONDS
        seconds += work.comparisons * QUICK_EPOCHS * epoch
        seconds += work.iterations * work.steps * CALL_SECONDS
    if work.real_epochs:
        part = min(1.0, MOST_TRAINED * degree / nodes) if train > ALWAYS_TRAINED else 1.0
        numbers = (3 * graph.filled + 4 * entries) * part
        seconds += work.real_epochs * numbers * work.hidden_channels / DENSE
    weights = (width + classes) * work.hidden_channels * 4
    kept = work.experts * work.expert_epochs * weights
    if train > ALWAYS_TRAINED and not work.experts:
        # Experts keep the rows of all training nodes; other networks learn from some of them.
        train = min(nodes, int(MOST_TRAINED * degree))
    numbers = feature_numbers(graph)
    at_hand = (train + reached) * numbers * 4 + reached * work.hidden_channels * 4 + kept
    if not isinstance(graph, StoredGraph):
        # What is copied of the features and what is held otherwise is not there at the same time.
        usual = in_memory_bytes(graph)
        copied = (FEATURE_COPIES - 1) * nodes * numbers * 4
        memory = GROUND_BYTES + at_hand + max(usual, usual - copied + work.held)
        return Estimate(seconds, memory, 0, in_blocks=False, disk_folder="")
    clustered = 3 * min(nodes, most_rows(max(width, classes))) if work.clustered else 0
    at_hand += clustered * feature_numbers(graph, work.hops) * 4
    at_hand += min(work.outer_nodes, nodes) * int(degree) * numbers * 4
    blocks = min(
        graph.disk.memory, 2 * nodes * feature_numbers(graph, work.hops) * 4 + 16 * entries
    )
    pointers = 8 if graph.is_sparse else 0
    on_disk = 0
    for hop in range(1, work.hops + 1):
        name = f"features-{hop}-{graph.content_hash[:16]}"
        if not any((graph.disk.scratch / f"{name}{end}.npy").is_file() for end in ("", "-indptr")):
            on_disk += nodes * (4 * feature_numbers(graph, hop) + 4 + pointers)
    return Estimate(
        seconds,
        GROUND_BYTES + blocks + NODE_BYTES * nodes + at_hand,
        on_disk,
        in_blocks=True,
        disk_folder=str(graph.disk.scratch),
    )


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
