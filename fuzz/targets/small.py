"""A graph and a condensed graph small enough to be read thousands of times a second."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from gcsr import CondensedGraph, Graph


def small_graph(nodes: int = 8, **more: Any) -> Graph:
    """A few nodes on a ring, two classes."""
    here = np.arange(nodes)
    there = (here + 1) % nodes
    edges = np.stack([np.concatenate([here, there]), np.concatenate([there, here])])
    x = np.eye(nodes, 3, dtype=np.float32) + more.pop("fill", 0.5)
    ids = {"train": [0, 1], "val": [2, 3], "test": [4, 5]}
    return Graph.from_arrays(x, edges, here % 2, **ids, **more)


def small_condensed(
    *, half: bool = False, soft: bool = False, sparse: bool = False
) -> CondensedGraph:
    """Four nodes with a history."""
    told = {
        "method": "gcsr",
        "preset": "default",
        "seed": 0,
        "ratio": 0.5,
        "device": "cpu",
        "settings": {"alpha": 1.0},
        "versions": {"gcsr": "0"},
        "notes": ["a note"],
        "bytes": {"original": 1000},
        "measured": {"seconds": 1.5, "peak_memory_bytes": 10, "graphs_together": 2},
        "loss": {"every": 1, "values": [2.0, 1.0]},
        "stored": {"rule": "top-k=8", "validation": {"before": 50.0, "after": 49.5}},
        "automatic": {"chosen": {"method": "clusters"}, "race": [{"validation": {"gcn": 0.5}}]},
        "dataset": {"name": "some", "num_nodes": 8, "content_hash": "0", "inductive": False},
    }
    y = torch.tensor([[0.5, 0.5]] * 4) if soft else torch.tensor([0, 1, 1, -1])
    a = torch.ones(4, 4) if soft else torch.eye(4)
    x = torch.eye(4, 9) if sparse else torch.arange(8.0).reshape(4, 2)
    small = CondensedGraph(x, a, y, 2, told)
    return small.stored_as("float16") if half else small


def file_bytes(thing: Graph | CondensedGraph) -> bytes:
    """The bytes of the file that it is stored in."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file.safetensors"
        if isinstance(thing, Graph):
            return thing.to_npz(path).read_bytes()
        return thing.save(path).read_bytes()


def written(folder: Path, name: str, data: bytes) -> Path:
    """A file with these bytes."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
