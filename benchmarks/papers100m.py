"""What ogbn-papers100M would take, calculated from the largest size of `python -m benchmarks scale`.

    python benchmarks/papers100m.py

Every stage is scaled by the count that its work is proportional to. Rates of disks and networks are
assumptions, named as such.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROWS = Path(__file__).parents[1] / "results" / "bench" / "scale.json"
GB, GIB = 1e9, 2**30
# Assumed, not measured: one NVMe disk and a 10 Gbit/s network.
DISK_RATE, NETWORK_RATE = 1 * GB, 1.25 * GB
# How much of a machine's memory work may take.
USABLE = 0.75
# Stages that a cluster divides.
DIVIDED = ("propagate", "experts", "prior")
# Bytes per node that are in memory whatever is done in blocks: see gcsr.outofcore.estimate.
NODE_BYTES = 40
HIDDEN, EXPERTS, EPOCHS = 256, 20, 100


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


# Published counts (Hu et al., 2020); the 1.6 billion citations become symmetric.
PAPERS = Shape(111_059_956, 2 * 1_615_685_872, 128, 172, 1_207_179, 125_265, 214_338)


def measured_shape(rows: list[dict[str, Any]]) -> Shape:
    """The largest graph of the bench, by its rules (benchmarks.speed.planted)."""
    nodes, edges = rows[0]["sizes"][-1], rows[0]["edges"][-1]
    train = 20 * max(20, nodes // 20_000)
    val = train * 3 // 2
    return Shape(nodes, edges, 64, 20, train, val, nodes - train - val)


def seconds(rows: list[dict[str, Any]], of: Shape) -> dict[str, float]:
    """Processor seconds of every stage for another graph."""
    at = measured_shape(rows)
    cost = {row["what"]: row["cpu_seconds"][-1] for row in rows}

    def scaled(stage: str, work: float, measured: float) -> float:
        return cost[stage] * work / measured

    def looks(shape: Shape) -> float:
        return shape.reached(shape.val) * shape.features

    def tests(shape: Shape) -> float:
        return shape.reached(shape.test) * (shape.features + shape.classes)

    return {
        "convert": scaled("generate", of.folder_bytes, at.folder_bytes),
        "propagate": scaled("propagate", of.entries * of.features, at.entries * at.features),
        "experts": scaled(
            "experts", of.train * of.features * of.classes, at.train * at.features * at.classes
        ),
        "prior": scaled(
            "prior", of.nodes * of.features * of.classes, at.nodes * at.features * at.classes
        ),
        "condense": scaled("condense", max(looks(of), looks(at)), looks(at)),
        "evaluate": scaled("evaluate", max(tests(of), tests(at)), tests(at)),
    }


def held_bytes(of: Shape) -> int:
    """What is in memory beside the blocks."""
    rows = (of.train + of.reached(of.val)) * of.features * 4 + of.reached(of.val) * HIDDEN * 4
    experts = EXPERTS * EPOCHS * (of.features + of.classes) * HIDDEN * 4
    return NODE_BYTES * of.nodes + rows + experts


def sweeps(of: Shape, block_bytes: float, machines: int = 1) -> int:
    """How often a machine reads all features per hop: once per block of its rows (blocks.hops.Plan)."""
    if of.x_bytes <= block_bytes / 2:
        return 1
    per_row = 4 * of.features + 16 * (of.entries / of.nodes + 1)
    rows = int(block_bytes / 2 / per_row)
    return -(-of.nodes // (rows * machines))


def calculation(
    rows: list[dict[str, Any]], of: Shape = PAPERS, memory: float = 64 * GB, cores: int = 2
) -> list[str]:
    """The section of docs/scale.md, as lines."""
    cpu, at, held = seconds(rows, of), measured_shape(rows), held_bytes(of)
    blocks = USABLE * memory - held
    alone, among_ten = sweeps(of, blocks), sweeps(of, blocks, 10)
    disk = of.folder_bytes + 2 * 4 * of.nodes * (of.features + 1) + 16 * of.edges
    traffic = 0.9 * among_ten * of.x_bytes
    work = sum(cpu.values())
    divided = sum(cpu[stage] for stage in DIVIDED)
    ten_work = work - divided + divided / 10
    one_time = work / cores + 2 * alone * of.x_bytes / DISK_RATE
    ten_time = ten_work / cores + 2 * traffic / NETWORK_RATE
    largest = (USABLE * memory - 8 * GIB) / (held / of.nodes) / 1e6
    x = f"{of.x_bytes / GB:.0f} GB"
    grows = {
        "convert": "bytes of the folder",
        "propagate": "edges x features",
        "experts": "training nodes x features x classes",
        "prior": "nodes x features x classes",
        "condense": "neighborhood of the validation nodes x features",
        "evaluate": "neighborhood of the test nodes x (features + classes)",
    }
    return [
        f"From the costs at {at.nodes:,} nodes ({at.edges:,} edges, {at.features} features), each stage"
        f" scaled by what its work grows with, to {of.nodes:,} nodes, {of.edges:,} stored edges (both"
        f" directions), {of.features} features and {of.classes} classes:",
        "",
        "| stage | grows with | processor time |",
        "|---|---|---|",
        *(f"| {stage} | {why} | {_time(cpu[stage])} |" for stage, why in grows.items()),
        f"| all | | {_time(work)} |",
        "",
        f"| | one machine of {memory / GB:.0f} GB | ten of them |",
        "|---|---|---|",
        f"| time, {cores} cores each | {_time(one_time)} | {_time(ten_time)} |",
        f"| memory held beside blocks | {held / GB:.1f} GB | {held / GB:.1f} GB each |",
        f"| memory for blocks | {blocks / GB:.1f} GB | {blocks / GB:.1f} GB each |",
        f"| features read per hop | {alone} x {x} | {among_ten} x {x} each |",
        f"| network per hop | none | {traffic / GB:.0f} GB into each,"
        f" {_time(traffic / NETWORK_RATE)} |",
        f"| disk at the peak of converting | {disk / GB:.0f} GB | {disk / 10 / GB:.0f} GB each |",
        "",
        f"Assumed, not measured: disks that read {DISK_RATE / GB:.0f} GB/s, a network of"
        f" {8 * NETWORK_RATE / GB:.0f} Gbit/s, {100 * USABLE:.0f} % of the memory usable. Ten machines"
        " divide propagation, experts and the prior; the other stages stay on one of them. Experts are"
        " scaled from few training nodes, where an epoch is mostly overhead: an upper bound.",
        "",
        f"**Where it breaks.** What is held whatever the blocks, {held / of.nodes:.0f} bytes per node"
        f" here, leaves less than 8 GiB for blocks from about {largest:.0f} million nodes of this kind"
        " on a machine of this size. Blocks of half the size read the features twice as often, so time"
        " goes first. More machines do not help the stages that stay on one: the largest of these is"
        f" {_slowest(cpu)}.",
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
