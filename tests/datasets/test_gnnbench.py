"""Amazon and Coauthor files, written here in their published layout and compared with PyG."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcsr import datasets
from gcsr.utils.errors import InputError

NODES, WORDS = 130, 9


def _arrays(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    edges = rng.random((NODES, NODES)) < 0.05
    adjacency = sp.csr_matrix((edges * rng.random((NODES, NODES))).astype(np.float32))
    adjacency.setdiag(1)  # the real files hold loops and are directed
    counts = sp.csr_matrix(rng.poisson(0.4, size=(NODES, WORDS)).astype(np.float32))
    return {
        "adj_data": adjacency.data,
        "adj_indices": adjacency.indices,
        "adj_indptr": adjacency.indptr,
        "adj_shape": np.array(adjacency.shape),
        "attr_data": counts.data,
        "attr_indices": counts.indices,
        "attr_indptr": counts.indptr,
        "attr_shape": np.array(counts.shape),
        "labels": np.repeat([0, 1], [70, 60]),
    }


def _write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)


FILES = {
    "amazon-computers": "Computers/raw/amazon_electronics_computers.npz",
    "amazon-photo": "Photo/raw/amazon_electronics_photo.npz",
    "coauthor-cs": "CS/raw/ms_academic_cs.npz",
    "coauthor-physics": "Physics/raw/ms_academic_phy.npz",
}


@pytest.mark.parametrize("name", list(FILES))
def test_equals_pyg(tmp_path, name):
    from torch_geometric.datasets import Amazon, Coauthor

    _write(tmp_path / FILES[name], _arrays())
    family, _, graph_name = name.partition("-")
    theirs = (Amazon if family == "amazon" else Coauthor)(str(tmp_path), graph_name)[0]
    ours = datasets.load(name, tmp_path, features="keep")
    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.y, theirs.y)
    edges = ours.to_pyg().edge_index
    assert set(zip(*edges.tolist(), strict=True)) == set(
        zip(*theirs.edge_index.tolist(), strict=True)
    )
    assert edges.shape == theirs.edge_index.shape


@pytest.mark.parametrize(
    ("name", "scaling"), [("amazon-photo", "standardize"), ("coauthor-cs", "rows")]
)
def test_split_and_scaling(tmp_path, name, scaling):
    _write(tmp_path / FILES[name], _arrays())
    graph = datasets.load(name, tmp_path)
    assert torch.bincount(graph.y[graph.train]).tolist() == [20, 20]
    assert torch.bincount(graph.y[graph.val]).tolist() == [30, 30]
    assert torch.bincount(graph.y[graph.test]).tolist() == [20, 10]
    assert (graph.feature_scaling, graph.inductive, graph.is_weighted) == (scaling, False, False)
    again = datasets.load(name, tmp_path)
    assert again.content_hash == graph.content_hash


def test_dense_attributes_give_the_same_graph(tmp_path):
    arrays = _arrays()
    _write(tmp_path / "sparse" / FILES["coauthor-cs"], arrays)
    dense = {key: value for key, value in arrays.items() if not key.startswith("attr_")}
    csr = (arrays["attr_data"], arrays["attr_indices"], arrays["attr_indptr"])
    dense["attr_matrix"] = sp.csr_matrix(csr, arrays["attr_shape"]).toarray()
    _write(tmp_path / "dense" / FILES["coauthor-cs"], dense)
    first = datasets.load("coauthor-cs", tmp_path / "sparse")
    second = datasets.load("coauthor-cs", tmp_path / "dense")
    assert first.content_hash == second.content_hash


def test_pickled_names_beside_the_arrays_are_never_opened(tmp_path):
    _write(tmp_path / FILES["coauthor-cs"], _arrays() | {"node_names": np.array([None, "a"])})
    assert datasets.load("coauthor-cs", tmp_path).num_nodes == NODES


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": None}, "but lacks labels"),
        ({"attr_data": None}, "but lacks attr_data"),
        ({"labels": np.array(["a"] * NODES)}, "labels must be"),
        ({"labels": np.array([None] * NODES)}, "pickled"),
        ({"labels": np.zeros(3, dtype=int)}, "one class per row|at least two"),
        ({"adj_shape": np.array([NODES])}, "adj_shape"),
        ({"adj_indices": np.array([5])}, "adj_indices"),
        ({"attr_shape": np.array([NODES, 2])}, "must be columns"),
        ({"attr_shape": np.array([NODES + 1, WORDS])}, "must describe"),
    ],
)
def test_damaged_file_is_one_sentence(tmp_path, changes, message):
    arrays = {k: v for k, v in (_arrays() | changes).items() if v is not None}
    _write(tmp_path / FILES["amazon-photo"], arrays)
    with pytest.raises(InputError, match=message):
        datasets.load("amazon-photo", tmp_path)
