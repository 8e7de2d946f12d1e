"""Datasets as others publish them."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import zipfile
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fuzz.containers import Archive, Array, Bundle, Lines
from fuzz.target import Target
from fuzz.targets.small import small_graph, written
from gcsr.data.graph import Graph
from gcsr.datasets.readers import (
    RawGraph,
    read_arxiv,
    read_gnnbench,
    read_graphsaint,
    read_planetoid,
    read_wordnet,
)
from gcsr.datasets.registry import (
    ARXIV_ARCHIVE,
    ARXIV_FILES,
    GRAPHSAINT_FILES,
    WORDNET_FILES,
    planetoid_files,
)

_PLANETOID = Bundle(planetoid_files("cora"))
_SAINT = Bundle(
    GRAPHSAINT_FILES,
    (("adj_full.npz", Archive()), ("feats.npy", Array())),
)
_TABLES = Bundle(ARXIV_FILES, tuple((name, Lines()) for name in ARXIV_FILES))
_WORDNET = Bundle(WORDNET_FILES, tuple((name, Lines()) for name in WORDNET_FILES))
_GZIP = b"\x1f\x8b"


def _whole(read: Callable[[Path], RawGraph], folder: Path) -> object:
    return Graph.from_arrays(**vars(read(folder)), weighted=False, features="rows", undirected=True)


def _planetoid_seeds() -> list[bytes]:
    graph = small_graph()
    y = np.eye(2, dtype=np.int32)[graph.y.numpy()]
    x = sp.csr_matrix(graph.x.numpy())
    lists = defaultdict(list, {i: [(i + 1) % 8, (i - 1) % 8] for i in range(8)})
    content = [x[:2], x[6:], x[:6], y[:2], y[6:], y[:6], lists]
    return [
        _PLANETOID.joined([*(pickle.dumps(c, protocol=p) for c in content), b"7\n6\n"])
        for p in (3, 4)
    ]


def _read_planetoid(data: bytes, folder: Path) -> object:
    for name, part in zip(_PLANETOID.names, _PLANETOID.parts(data), strict=True):
        written(folder, name, part)
    return _whole(partial(read_planetoid, name="cora"), folder)


def _saint_seeds() -> list[bytes]:
    graph = small_graph()
    a, adjacency, features = graph.adjacency, io.BytesIO(), io.BytesIO()
    np.savez(adjacency, indptr=a.indptr, indices=a.indices, data=a.data, shape=a.shape)
    np.save(features, graph.x.numpy().astype(np.float64))
    classes = {str(i): int(label) for i, label in enumerate(graph.y)}
    roles = {"tr": [0, 1], "va": [2, 3], "te": [4, 5]}
    texts = [json.dumps(one).encode() for one in (classes, roles)]
    return [_SAINT.joined([adjacency.getvalue(), features.getvalue(), *texts])]


def _read_saint(data: bytes, folder: Path) -> object:
    for name, part in zip(_SAINT.names, _SAINT.parts(data), strict=True):
        written(folder, name, part)
    return _whole(read_graphsaint, folder)


def _tables() -> list[bytes]:
    graph = small_graph()
    coo = graph.adjacency.tocoo()

    def text(values: np.ndarray) -> bytes:
        return b"".join(",".join(map(str, row)).encode() + b"\n" for row in values.tolist())

    def column(values: object) -> bytes:
        return text(np.asarray(values).reshape(-1, 1))

    return [
        text(np.stack([coo.row, coo.col], 1)),
        text(graph.x.numpy()),
        column(graph.y),
        column(graph.num_nodes),
        column(graph.num_edges),
        *(column(getattr(graph, name)) for name in ("train", "val", "test")),
    ]


def _read_tables(data: bytes, folder: Path) -> object:
    for name, part in zip(_TABLES.names, _TABLES.parts(data), strict=True):
        packed = part if part.startswith(_GZIP) else gzip.compress(part, 1, mtime=0)
        written(folder, name, packed)
    return _whole(read_arxiv, folder)


def _archive_seeds() -> list[bytes]:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in zip(ARXIV_FILES, _tables(), strict=True):
            archive.writestr(f"arxiv/{name}", gzip.compress(content, mtime=0))
    return [made.getvalue()]


def _read_archive(data: bytes, folder: Path) -> object:
    written(folder, ARXIV_ARCHIVE, data)
    return _whole(partial(read_arxiv, archive=ARXIV_ARCHIVE), folder)


def _bench_seeds() -> list[bytes]:
    graph = small_graph(nodes=110)  # 20 and 30 of each class are not for testing
    found = []
    for dense in (True, False):
        made, a, x = io.BytesIO(), graph.adjacency, sp.csr_array(graph.x.numpy())
        sparse = {
            "attr_data": x.data,
            "attr_indices": x.indices,
            "attr_indptr": x.indptr,
            "attr_shape": x.shape,
        }
        np.savez(
            made,
            adj_data=a.data,
            adj_indices=a.indices,
            adj_indptr=a.indptr,
            adj_shape=a.shape,
            labels=graph.y.numpy(),
            **({"attr_matrix": graph.x.numpy()} if dense else sparse),
        )
        found.append(made.getvalue())
    return found


def _read_bench(data: bytes, folder: Path) -> object:
    written(folder, "some.npz", data)
    return _whole(partial(read_gnnbench, file="some.npz"), folder)


def _wordnet_seeds() -> list[bytes]:
    def synsets(letter: str, number: int, count: int) -> bytes:
        head = b"  1 This software\n"
        line = (
            '{:08d} {:02d} {} 01 word 0 001 @ {:08d} {} 0000 | some plain definition; "example"\n'
        )
        rows = (line.format(i, number, letter, i // 2, letter) for i in range(count))
        return head + "".join(rows).encode()

    return [_WORDNET.joined([synsets("n", 3, 55), synsets("v", 29, 52), b"", synsets("r", 2, 1)])]


def _read_wordnet(data: bytes, folder: Path) -> object:
    for name, part in zip(_WORDNET.names, _WORDNET.parts(data), strict=True):
        written(folder, name, part)
    return _whole(read_wordnet, folder)


TARGETS = (
    Target(
        "planetoid",
        "Planetoid's pickles",
        _planetoid_seeds,
        _read_planetoid,
        _PLANETOID,
        (b"cnumpy\ndtype\n", b"\x85", b"R", b"b", b"r\xff\xff\xff\x7f", b"cos\nsystem\n"),
    ),
    Target(
        "ogb-tables", "OGB's tables", lambda: [_TABLES.joined(_tables())], _read_tables, _TABLES
    ),
    Target("ogb-archive", "OGB's archive", _archive_seeds, _read_archive, Archive()),
    Target("graphsaint", "GraphSAINT's files", _saint_seeds, _read_saint, _SAINT),
    Target("gnnbench", "Amazon's and Coauthor's npz files", _bench_seeds, _read_bench, Archive()),
    Target("wordnet", "WordNet's dict files", _wordnet_seeds, _read_wordnet, _WORDNET),
)
