"""Sparse features: the same graph, the same hash and the same products as dense ones."""

from __future__ import annotations

import copy
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

import gcsr
from gcsr import Graph, InputError
from gcsr.data import features
from gcsr.data.folder import verify
from gcsr.data.stored_graph import in_memory_bytes, open_folder
from gcsr.data.views import View
from gcsr.models.registry import MODELS
from gcsr.models.registry import testing_model as model_of
from gcsr.models.sparse import SparseTopology


@pytest.fixture
def pair() -> tuple[Graph, Graph]:
    """A graph with dense features and the same one with sparse features."""
    rng = np.random.default_rng(0)
    x = sp.random(60, 40, density=0.1, random_state=0, dtype=np.float32)
    y, edges = np.arange(60) % 3, rng.integers(0, 60, (2, 150))
    split = {"train": np.arange(30), "val": np.arange(30, 45), "test": np.arange(45, 60)}
    dense = Graph.from_arrays(x.toarray(), edges, y, undirected=True, **split)
    return dense, replace(dense, x=dense.x.to_sparse_csr())


def test_storage_does_not_change_the_graph(pair: tuple[Graph, Graph], tmp_path: Path) -> None:
    dense, sparse = pair
    assert features.is_sparse(sparse.x)
    assert sparse.content_hash == dense.content_hash
    assert sparse.stored_bytes == dense.stored_bytes
    assert sparse.nbytes < dense.nbytes
    assert Graph.from_npz(sparse.to_npz(tmp_path / "g.npz")).content_hash == dense.content_hash
    scaled, expected = sparse.scaled("rows"), dense.scaled("rows")
    assert features.is_sparse(scaled.x)
    assert scaled.content_hash == expected.content_hash
    assert torch.equal(sparse.scaled("standardize").x, dense.scaled("standardize").x)
    for one in (copy.deepcopy(sparse), pickle.loads(pickle.dumps(sparse))):
        assert one.content_hash == dense.content_hash
        one.require_unchanged()
    assert torch.equal(sparse.to_pyg().x.to_dense(), dense.x)


def test_functions_agree_with_dense_ones(pair: tuple[Graph, Graph]) -> None:
    dense, sparse = pair
    x, y = sparse.x, dense.x
    nodes = torch.tensor([5, 3, 3])
    assert torch.equal(features.take_rows(x, nodes), y[nodes])
    assert torch.equal(features.select_rows(x, nodes).to_dense(), y[nodes])
    assert torch.equal(features.take_columns(x, nodes).to_dense(), y[:, nodes])
    assert torch.equal(features.column_variance(x), y.var(0))
    w = torch.randn(40, 7)
    torch.testing.assert_close(features.matmul(x, w), y @ w)
    operator = SparseTopology(dense.adjacency, torch.device("cpu")).normalized
    once = features.propagated(operator, x)
    torch.testing.assert_close(once.to_dense(), operator(y))
    assert not features.is_sparse(features.propagated(operator, once)), "hardly sparse by now"


def test_hidden_nodes_stay_hidden(pair: tuple[Graph, Graph]) -> None:
    dense, sparse = (View(replace(graph, inductive=True)) for graph in pair)
    assert features.is_sparse(sparse.condensing().visible.x)
    assert torch.equal(sparse.test().x.to_dense(), dense.test().x)
    assert sparse.stored_parts == dense.stored_parts


def test_variances_of_very_many_columns(
    pair: tuple[Graph, Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "MANY_NUMBERS", 0)
    torch.testing.assert_close(features.column_variance(pair[1].x), pair[0].x.var(0))


EDGES = np.array([[0], [1]])


def _from_pandas(x: sp.coo_array, y: np.ndarray) -> Graph:
    pd = pytest.importorskip("pandas")
    nodes = pd.DataFrame.sparse.from_spmatrix(sp.coo_matrix(x)).rename(columns=str)
    edges = pd.DataFrame(EDGES.T, columns=["source", "target"])
    return Graph.from_pandas(edges, nodes, y=y, val=[0], undirected=True)


def _from_networkx(x: sp.coo_array, y: np.ndarray) -> Graph:
    graph = pytest.importorskip("networkx").empty_graph(50)
    graph.add_edge(0, 1)
    return Graph.from_networkx(graph, x=x, y=y, val=[0])


def _from_tensor(x: torch.Tensor, y: np.ndarray) -> Graph:
    masks = {"val_mask": torch.arange(50) == 0}
    data = Data(x=x, edge_index=torch.from_numpy(EDGES), y=torch.from_numpy(y), **masks)
    return Graph.from_pyg(data, undirected=True)


READERS: dict[str, Callable[[sp.coo_array, np.ndarray], Graph]] = {
    "scipy": lambda x, y: Graph.from_arrays(x, EDGES, y, val=[0], undirected=True),
    "coo": lambda x, y: _from_tensor(torch.from_numpy(x.toarray()).to_sparse(), y),
    "csr": lambda x, y: _from_tensor(torch.from_numpy(x.toarray()).to_sparse_csr(), y),
    "pandas": _from_pandas,
    "networkx": _from_networkx,
}


@pytest.mark.filterwarnings("ignore::gcsr.InputWarning")
@pytest.mark.parametrize("given", READERS)
def test_given_sparse_stays_sparse(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = sp.coo_array(sp.random(50, 30, density=0.05, random_state=0)), np.arange(50) % 2
    small = READERS[given](x, y)
    assert small.x.layout == torch.strided, "dense costs nothing here"
    monkeypatch.setattr(features, "SMALL_BYTES", 0)
    graph = READERS[given](x, y)
    assert features.is_sparse(graph.x)
    assert graph.content_hash == small.content_hash


def test_unfolding_is_bounded(pair: tuple[Graph, Graph], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "free_memory_bytes", lambda device: 60 * 40 * 4)
    with pytest.raises(InputError, match=r"x must be dense for standardize, got 60 x 40 sparse"):
        pair[1].scaled("standardize")


def test_invalid_sparse_features(pair: tuple[Graph, Graph]) -> None:
    x = pair[1].x.clone()
    with pytest.raises(InputError, match=r"x must be dense or a CSR tensor, got torch\.sparse_coo"):
        replace(pair[1], x=pair[0].x.to_sparse())
    x.values()[0] = torch.nan
    first = int((pair[0].x != 0).any(1).nonzero()[0])
    with pytest.raises(InputError, match=rf"NaN or infinity in 1 row \(first: {first}\)"):
        replace(pair[1], x=x)
    x.col_indices()[0] = 40
    with pytest.raises(InputError, match="x must be a valid CSR tensor"):
        replace(pair[1], x=x)


@pytest.mark.parametrize("name", MODELS)
def test_models_agree(pair: tuple[Graph, Graph], name: str) -> None:
    dense, sparse = pair
    topology = SparseTopology(dense.adjacency, torch.device("cpu"))
    model = model_of(name, 16)
    params = tuple(
        p.repeat(2, 1, 1).requires_grad_()
        for p in model.init(40, 3, torch.Generator().manual_seed(0))
    )
    for nodes in (None, dense.val):
        found = []
        for x in (dense.x, sparse.x):
            logits = model.logits(params, model.prepare(x, topology, nodes))
            found.append((logits, *torch.autograd.grad(logits.square().sum(), params)))
        torch.testing.assert_close(found[1], found[0])


def test_graph_folders_stay_sparse(pair: tuple[Graph, Graph], tmp_path: Path) -> None:
    dense, sparse = pair
    folder = sparse.to_folder(tmp_path / "sparse")
    assert not (folder / "features.npy").exists()
    assert verify(folder).content_hash == dense.content_hash
    stored = open_folder(folder, memory=2**20)
    assert stored.is_sparse
    assert stored.stored_bytes == dense.stored_bytes
    assert in_memory_bytes(stored) == in_memory_bytes(sparse)
    inside = stored.to_memory()
    assert features.is_sparse(inside.x)
    assert inside.content_hash == dense.content_hash
    nodes = torch.tensor([7, 2])
    assert torch.equal(View(stored).condensing().visible.features[nodes], dense.x[nodes])
    plain = open_folder(dense.to_folder(tmp_path / "dense"), memory=2**20)
    for model in ("gcn", "sgc", "sgc-linear", "mlp"):
        found = [
            gcsr.evaluate(gcsr.condense(one, nodes=6, method="random"), one, model=model, runs=1)
            for one in (stored, plain)
        ]
        assert found[0].mean == found[1].mean, model


def test_damaged_sparse_folder(pair: tuple[Graph, Graph], tmp_path: Path) -> None:
    folder = pair[1].to_folder(tmp_path / "sparse")
    path = folder / "features_indices.npy"
    columns = np.load(path)
    columns[3] = 40
    np.save(path, columns)
    manifest = folder / "manifest.json"
    claim = manifest.read_text().replace('"feature_count": 40', f'"feature_count": {2**40}')
    shutil.copytree(folder, tmp_path / "wide")
    (tmp_path / "wide" / "manifest.json").write_text(claim)
    with pytest.raises(InputError, match=r"a row of 1,099,511,627,776 features would take"):
        open_folder(tmp_path / "wide", memory=2**20)
    with pytest.raises(InputError, match=r"features_indices.npy: must be 0..39"):
        open_folder(folder, memory=2**20).to_memory()
    with pytest.raises(InputError, match=r"features_indices.npy"):
        verify(folder)
