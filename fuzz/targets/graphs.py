"""Graph files and PyG's ``Data``."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import torch

from fuzz.containers import Archive
from fuzz.target import Target
from fuzz.targets.small import file_bytes, small_graph, written
from gcsr import Graph

_DTYPES = (
    torch.float32,
    torch.int64,
    torch.bool,
    torch.float16,
    torch.float64,
    torch.complex64,
    torch.uint8,
    torch.bfloat16,
)
_FIELDS = (
    "x",
    "edge_index",
    "y",
    "train_mask",
    "val_mask",
    "test_mask",
    "edge_weight",
    "edge_attr",
)


def _npz_seeds() -> list[bytes]:
    raw = io.BytesIO()
    graph = small_graph()
    a = graph.adjacency
    np.savez(
        raw,
        adj_indptr=a.indptr,
        adj_indices=a.indices,
        adj_data=a.data,
        x=graph.x.numpy().astype(">f8"),
        y=graph.y.numpy().astype(np.uint8),
        **{name: getattr(graph, name).numpy() for name in ("train", "val", "test")},
    )
    return [
        file_bytes(small_graph()),
        file_bytes(small_graph(fill=0.0, inductive=True, num_classes=5)),
        raw.getvalue(),
    ]


def _read_npz(data: bytes, folder: Path) -> object:
    return Graph.from_npz(written(folder, "graph.npz", data), features="rows")


def _data_seeds() -> list[bytes]:
    """Per field: type, number of dimensions, their sizes, and how values begin and go on."""
    masks = [bytes((2, 1, 8, first, 2)) for first in (0, 2, 4)]
    x, edges, y = bytes((0, 2, 8, 3, 1, 1)), bytes((1, 2, 2, 4, 0, 1)), bytes((1, 1, 8, 0, 1))
    return [
        b"".join([x, edges, y, *masks]),
        b"".join([x, edges, y, *masks, bytes((0, 1, 4, 1, 0))]),
    ]


def _read_data(data: bytes, folder: Path) -> object:
    from torch_geometric.data import Data  # noqa: PLC0415 - takes a second to import

    made = Data()
    for name in _FIELDS:
        tensor, data = _tensor(data)
        if tensor is not None:
            made[name] = tensor
    return Graph.from_pyg(made, split=data[0] if data else 0, undirected=True)


def _tensor(data: bytes) -> tuple[torch.Tensor | None, bytes]:
    if len(data) < 2 or data[0] >= 32:
        return None, data[1:]
    kind, dimensions = _DTYPES[data[0] % len(_DTYPES)], data[1] % 4
    shape = [size % 16 for size in data[2 : 2 + dimensions]]
    first, step = (*data[2 + dimensions : 4 + dimensions], 0, 0)[:2]
    places = torch.arange(math.prod(shape), dtype=torch.float64)
    if kind == torch.bool:
        values = (places >= first) & (places < first + step)
    else:
        values = (first + step * places) % 251 - (1 if step > 128 else 0)
    return values.reshape(shape).to(kind), data[4 + dimensions :]


TARGETS = (
    Target(
        "graph-npz",
        "graph files (`.npz`)",
        _npz_seeds,
        _read_npz,
        Archive(),
        (b"x_shape", b"adj_data", b"'descr': '|O'", b"'shape': (9999999999,)", b"x.npy"),
    ),
    Target("pyg-data", "PyG's `Data`", _data_seeds, _read_data),
)
