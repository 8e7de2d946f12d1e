"""What ogbn-papers100M and MAG240M would take, from the largest size of `python -m benchmarks scale`.

    python benchmarks/papers100m.py

Every stage is scaled by the count that its work is proportional to. Rates of disks and networks are
assumptions, named as such.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROWS = Path(__file__).parents[1] / "results" / "bench" / "scale-auto.json"
GB, GIB = 1e9, 2**30
# Assumed, not measured: one NVMe disk and a 10 Gbit/s network.
DISK_RATE, NETWORK_RATE = 1 * GB, 1.25 * GB
# How much of a machine's memory work may take.
USABLE = 0.75
# Stages that a cluster divides.
DIVIDED = ("propagate",)
# Bytes per node that are in memory whatever is done in blocks: see gcsr.outofcore.estimate.
NODE_BYTES = 40
# Nodes of minibatches, of networks on the real graph and of validation, and numbers that starts and
# minibatches read: see gcsr.data.views and gcsr.engines.bilevel.engine.
OUTER_NODES, TRAINED, VALIDATED = 48 * 2048, 2**15, 2**15
START_NUMBERS, OUTER_NUMBERS = 2**26, 2**29
# The pseudo-labeler, which label-rich graphs do not need: networks, epochs and hidden units beside
# those of the embedding (one network) and of the test (two).
LABELERS, LABELER_EPOCHS, EMBEDDING_EPOCHS, HIDDEN, TESTED = 5, 200, 100, 64, 2 * 256
HIDDEN_VALIDATED = 64
# Times that propagated features are read from the beginning to the end after message passing.
PASSES = 6


@dataclass(frozen=True)
class Shape:
    """Counts of a graph; ``edges`` are stored entries of the symmetric adjacency."""

    nodes: int
    edges: int
    features: int
    classes: int
    train: int
    val: int
    test: int

    @property
    def x_bytes(self) -> int:
        """Bytes of the features."""
        return 4 * self.nodes * self.features

    @property
    def folder_bytes(self) -> int:
        """Bytes of the graph folder."""
        return self.x_bytes + 4 * self.edges + 16 * self.nodes

    @property
    def entries(self) -> int:
        """Entries of Eq. 2: edges and self-connections."""
        return self.edges + self.nodes

    def reached(self, nodes: int) -> int:
        """Nodes and their neighbors, at most."""
        return min(self.nodes, int(nodes * self.entries / self.nodes))


# Published counts (Hu et al., 2020 and 2021); edges become symmetric.
PAPERS = Shape(111_059_956, 2 * 1_615_685_872, 128, 172, 1_207_179, 125_265, 214_338)
MAG = Shape(244_160_499, 2 * 1_728_364_232, 768, 153, 1_112_392, 138_949, 146_818)
NAMES = {PAPERS: "ogbn-papers100M", MAG: "MAG240M, all node types alike"}


def measured_shape(rows: list[dict[str, Any]]) -> Shape:
    """The largest graph of the bench, by its rules (benchmarks.speed.planted)."""
    nodes, edges = rows[0]["sizes"][-1], rows[0]["edges"][-1]
    train = nodes // 2
    val = 20 * max(20, nodes // 20_000) * 3 // 2
    return Shape(nodes, edges, 64, 20, train, val, nodes - train - val)


def seconds(rows: list[dict[str, Any]], of: Shape) -> dict[str, float]:
    """Processor seconds of every stage for another graph."""
    at = measured_shape(rows)
    cost = {row["what"]: row["cpu_seconds"][-1] for row in rows}

    def scaled(stage: str, work: float, measured: float) -> float:
        return cost[stage] * work / measured

    def outer(shape: Shape) -> float:
        return min(OUTER_NUMBERS, shape.reached(OUTER_NODES) * shape.features)

    def checked(shape: Shape) -> float:
        return shape.reached(min(shape.val, VALIDATED)) * shape.features

    def starts(shape: Shape) -> float:
        return START_NUMBERS + shape.reached(TRAINED) * shape.features

    def tests(shape: Shape) -> float:
        return shape.reached(shape.test) * (shape.features + shape.classes)

    found = {
        "convert": scaled("generate", of.folder_bytes, at.folder_bytes),
        "propagate": scaled("propagate", of.entries * of.features, at.entries * at.features),
        "starts": scaled("starts", starts(of), starts(at)),
        "bilevel": scaled("bilevel", outer(of), outer(at)),
        "compare": scaled("compare", max(checked(of), checked(at)), checked(at)),
        "evaluate": scaled("evaluate", max(tests(of), tests(at)), tests(at)),
    }
    if 4 * of.train < of.nodes:
        # Few labels: networks that are trained as the embedding of the starts is, and predict the nodes
        # that starts and minibatches read, for which nearly all nodes are reached.
        trained = LABELERS * LABELER_EPOCHS / EMBEDDING_EPOCHS * found["starts"]
        predicted = of.nodes * (of.features + of.classes) / tests(at) * LABELERS * HIDDEN / TESTED
        found["pseudo-labels"] = trained + predicted * cost["evaluate"]
    return found


def held_bytes(of: Shape) -> int:
    """What is in memory beside the blocks."""
    checked = of.reached(min(of.val, VALIDATED))
    rows = 3 * START_NUMBERS + min(OUTER_NUMBERS, of.reached(OUTER_NODES) * of.features)
    rows += (checked + of.reached(TRAINED)) * of.features + checked * HIDDEN_VALIDATED
    return NODE_BYTES * of.nodes + 4 * rows


def sweeps(of: Shape, block_bytes: float, machines: int = 1) -> int:
    """How often a machine reads all features per hop: once per block of its rows (blocks.hops.Plan)."""
    if of.x_bytes <= block_bytes / 2:
        return 1
    per_row = 4 * of.features + 16 * (of.entries / of.nodes + 1)
    rows = int(block_bytes / 2 / per_row)
    return -(-of.nodes // (rows * machines))


def calculation(rows: list[dict[str, Any]], memory: float = 64 * GB, cores: int = 2) -> list[str]:
    """The section of docs/scale.md, as lines."""
    at = measured_shape(rows)
    grows = {
        "convert": "bytes of the folder",
        "propagate": "edges x features",
        "pseudo-labels": "training: that of the starts; predicting: nodes x (features + classes)",
        "starts": "rows that are read (bounded) x features",
        "bilevel": "neighborhoods of minibatches (bounded) x features",
        "compare": "neighborhood of validation nodes (bounded) x features",
        "evaluate": "neighborhood of the test nodes x (features + classes)",
    }
    shapes = list(NAMES)
    cpu = [seconds(rows, of) for of in shapes]
    lines = [
        f"From the costs at {at.nodes:,} nodes ({at.edges:,} edges, {at.features} features), each stage"
        " scaled by what its work grows with:",
        "",
        f"| processor time | grows with | {' | '.join(NAMES.values())} |",
        "|---|---|" + "---|" * len(shapes),
        *(
            f"| {stage} | {why} | {' | '.join(_time(one.get(stage, 0.0)) for one in cpu)} |"
            for stage, why in grows.items()
        ),
        f"| all | | {' | '.join(_time(sum(one.values())) for one in cpu)} |",
    ]
    for of, one in zip(shapes, cpu, strict=True):
        lines += _on_machines(of, one, memory, cores)
    return [
        *lines,
        "",
        f"Assumed, not measured: disks that read {DISK_RATE / GB:.0f} GB/s, a network of"
        f" {8 * NETWORK_RATE / GB:.0f} Gbit/s, {100 * USABLE:.0f} % of the memory usable. Ten machines"
        " divide propagation; the other stages stay on one of them, or one seed on each. Propagated"
        f" features are read {PASSES} times after message passing.",
    ]


def _on_machines(of: Shape, cpu: dict[str, float], memory: float, cores: int) -> list[str]:
    """One machine beside ten."""
    held = held_bytes(of)
    blocks = USABLE * memory - held
    alone, among_ten = sweeps(of, blocks), sweeps(of, blocks, 10)
    disk = of.folder_bytes + 2 * 4 * of.nodes * (of.features + 1) + 16 * of.edges
    traffic = 0.9 * among_ten * of.x_bytes
    work, divided = sum(cpu.values()), sum(cpu[stage] for stage in DIVIDED)
    read = PASSES * of.x_bytes / DISK_RATE
    one_time = work / cores + 2 * alone * of.x_bytes / DISK_RATE + read
    ten_time = (work - 0.9 * divided) / cores + 2 * traffic / NETWORK_RATE + read
    x = f"{of.x_bytes / GB:.0f} GB"
    return [
        "",
        f"{NAMES[of]}: {of.nodes:,} nodes, {of.edges:,} stored edges (both directions), {of.features}"
        f" features, {of.classes} classes.",
        "",
        f"| | one machine of {memory / GB:.0f} GB | ten of them |",
        "|---|---|---|",
        f"| time, {cores} cores each | {_time(one_time)} | {_time(ten_time)} |",
        f"| memory held beside blocks | {held / GB:.1f} GB | {held / GB:.1f} GB each |",
        f"| memory for blocks | {blocks / GB:.1f} GB | {blocks / GB:.1f} GB each |",
        f"| features read per hop | {alone} x {x} | {among_ten} x {x} each |",
        f"| network per hop | none | {traffic / GB:.0f} GB into each,"
        f" {_time(traffic / NETWORK_RATE)} |",
        f"| disk at the peak | {disk / GB:.0f} GB | the same, shared |",
        "",
        f"The largest stage that stays on one machine is {_slowest(cpu)}.",
    ]


def _slowest(cpu: dict[str, float]) -> str:
    stage = max((name for name in cpu if name not in DIVIDED), key=lambda n: cpu[n])
    return f"`{stage}` ({_time(cpu[stage])})"


def _time(value: float) -> str:
    if value < 120:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def main() -> None:
    print("\n".join(calculation(json.loads(ROWS.read_text(encoding="utf-8")))))


if __name__ == "__main__":
    main()
