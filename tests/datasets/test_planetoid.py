"""The Planetoid reader, on the real files and on small ones."""

from __future__ import annotations

import collections
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcsr import datasets
from gcsr.utils.errors import InputError

PYG_NAMES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}


@pytest.fixture(scope="module")
def planetoid_root(shared_data) -> Path:
    if not (shared_data / "planetoid").is_dir():
        pytest.skip(f"{shared_data} holds no planetoid files")
    return shared_data


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "classes", "train"),
    [
        ("cora", 2708, 10556, 1433, 7, 140),
        ("citeseer", 3327, 9104, 3703, 6, 120),
        ("pubmed", 19717, 88648, 500, 3, 60),
    ],
)
def test_published_counts(planetoid_root, name, nodes, edges, features, classes, train):
    graph = datasets.load(name, planetoid_root)
    assert (graph.num_nodes, graph.num_edges) == (nodes, edges)
    assert (graph.num_features, graph.num_classes) == (features, classes)
    assert [len(graph.train), len(graph.val), len(graph.test)] == [train, 500, 1000]
    assert (graph.name, graph.feature_scaling, graph.inductive) == (name, "rows", False)
    assert torch.bincount(graph.y[graph.train]).tolist() == [20] * classes
    sums = graph.x.sum(1)
    assert torch.allclose(sums[sums > 0], torch.ones(()), atol=1e-5)


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_equals_pyg(planetoid_root, tmp_path, name):
    from torch_geometric.datasets import Planetoid

    raw = planetoid_root / "planetoid" / name / "raw"
    copy = tmp_path / PYG_NAMES[name] / "raw"
    copy.mkdir(parents=True)
    for file in raw.iterdir():
        shutil.copyfile(file, copy / file.name)
    theirs = Planetoid(str(tmp_path), PYG_NAMES[name])[0]
    # The copy is PyG's layout, with PyG's processed files beside it.
    ours = datasets.load(name, tmp_path, features="keep")
    assert torch.equal(ours.x, theirs.x)
    labeled = ours.y >= 0
    assert torch.equal(ours.y[labeled], theirs.y[labeled])
    mine = ours.to_pyg()
    for split in ("train_mask", "val_mask", "test_mask"):
        assert torch.equal(mine[split], theirs[split])
    assert set(zip(*mine.edge_index.tolist(), strict=True)) == set(
        zip(*theirs.edge_index.tolist(), strict=True)
    )


def test_citeseer_nodes_missing_from_the_files(planetoid_root):
    graph = datasets.load("citeseer", planetoid_root)
    missing = torch.nonzero(graph.y < 0)[:, 0]
    assert len(missing) == 15
    assert not graph.x[missing].any()
    in_split = torch.cat([graph.train, graph.val, graph.test])
    assert not torch.isin(missing, in_split).any()


@pytest.mark.parametrize("name", ["cora", "pubmed"])
def test_other_planetoid_graphs_are_fully_labeled(planetoid_root, name):
    assert int(datasets.load(name, planetoid_root).y.min()) == 0


TEST_INDEX = [8, 6, 9]  # node 7 is missing, as in Citeseer


def _small_files() -> dict[str, object]:
    features = np.arange(30, dtype=np.float32).reshape(10, 3) % 7
    labels = np.eye(2, dtype=np.int32)[[0, 1, 0, 1, 0, 1, 0, 0, 1, 1]]
    neighbors = collections.defaultdict(list)
    for a, b in [(0, 1), (1, 2), (2, 8), (3, 3), (4, 6), (4, 6), (5, 9)]:
        neighbors[a].append(b)
        neighbors[b].append(a)
    return {
        "x": sp.csr_matrix(features[:2]),
        "allx": sp.csr_matrix(features[:6]),
        "tx": sp.csr_matrix(features[TEST_INDEX]),
        "y": labels[:2],
        "ally": labels[:6],
        "ty": labels[TEST_INDEX],
        "graph": neighbors,
        "test.index": "".join(f"{node}\n" for node in TEST_INDEX).encode(),
    }


def _write(folder: Path, parts: dict[str, object], name: str = "cora") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part, content in parts.items():
        path = folder / f"ind.{name}.{part}"
        path.write_bytes(
            content if isinstance(content, bytes) else pickle.dumps(content, protocol=4)
        )
    return folder


@pytest.mark.parametrize(
    "folder", ["Cora/raw", "planetoid/cora/raw", "cora/raw", "cora", "planetoid/Cora/raw"]
)
def test_small_files_in_every_accepted_folder(tmp_path, folder):
    _write(tmp_path / folder, _small_files())
    graph = datasets.load("cora", tmp_path, features="keep")
    expected = (np.arange(30).reshape(10, 3) % 7).astype(np.float32)
    expected[7] = 0
    assert np.array_equal(graph.x.numpy(), expected)
    assert graph.y.tolist() == [0, 1, 0, 1, 0, 1, 0, -1, 1, 1]
    assert graph.train.tolist() == [0, 1]
    assert graph.val.tolist() == [2, 3, 4, 5]
    assert graph.test.tolist() == [6, 8, 9]
    assert graph.num_edges == 10  # five different edges; the loop is dropped
    assert [info.available for info in datasets.catalogue(tmp_path) if info.name == "cora"] == [
        True
    ]


def test_malicious_planetoid_file_is_refused_by_load(tmp_path):
    marker = tmp_path / "ran"
    attack = f"cposix\nsystem\n(Vtouch '{marker}'\ntR.".encode()
    _write(tmp_path / "cora", _small_files() | {"graph": attack})
    with pytest.raises(InputError, match=r"ind\.cora\.graph.*posix\.system"):
        datasets.load("cora", tmp_path)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("part", "content", "message"),
    [
        ("test.index", b"6\nseven\n", "test.index"),
        ("test.index", b"", "no node ids"),
        ("test.index", b"8\n8\n9\n", "must have matching sizes"),
        ("test.index", b"2\n8\n9\n", "must have matching sizes"),
        ("test.index", b"6\n8\n999999999999\n", "must be close to"),
        ("tx", sp.csr_matrix(np.ones((3, 4), dtype=np.float32)), "must have matching sizes"),
        ("ty", np.ones((2, 2), dtype=np.int32), "must have matching sizes"),
        ("ally", np.ones(6, dtype=np.int32), "class indicators"),
        ("allx", np.ones(6, dtype=np.float32), "must be a matrix"),
        ("graph", {0: [1], 1: [0], 77: [0]}, "node ids 0..9, got 77"),
        ("graph", {0: [1]}, "directed"),
    ],
)
def test_damaged_files_are_one_sentence(tmp_path, part, content, message):
    _write(tmp_path / "cora", _small_files() | {part: content})
    with pytest.raises(InputError, match=message):
        datasets.load("cora", tmp_path)
