"""Graphs from objects of other libraries, as `gcsr.load` and `gcsr.condense` take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import HeteroData, InMemoryDataset

import gcsr
from gcsr import Graph, InputError, InputWarning
from helpers import planted_graph

nx = pytest.importorskip("networkx")
SMALL: dict[str, Any] = {"nodes": 3, "method": "random"}


class _Dataset(InMemoryDataset):
    def __init__(self, *graphs):
        super().__init__()
        self.data, self.slices = self.collate(list(graphs))


def _hetero(data, *relations):
    made = HeteroData()
    for key in ("x", "y", "train_mask", "val_mask", "test_mask"):
        made["paper"][key] = data[key]
    for relation in relations:
        made["paper", relation, "paper"].edge_index = data.edge_index
    return made


# -- PyG --------------------------------------------------------------------------------------------


def test_pyg_data_in_place_of_a_graph(make):
    data = make().to_pyg()
    assert gcsr.load(data, name="mine", inductive=True).inductive
    assert gcsr.load(data).content_hash == make().content_hash
    small = gcsr.condense(data, **SMALL, name="mine", seed=2)
    assert torch.equal(small.x, gcsr.condense(make(), **SMALL, seed=2).x)
    assert small.provenance["dataset"]["name"] == "mine"
    quick = {"runs": 1, "recipe": gcsr.TrainingRecipe(epochs=2), "device": "cpu"}
    assert gcsr.evaluate(small, data, **quick).dataset == "mine"
    assert gcsr.Random(nodes=3).fit(data).condensed_.num_nodes == 3
    data.edge_index = data.edge_index[:, ::2]
    with pytest.raises(InputError, match="undirected=True"):
        gcsr.condense(data, **SMALL)
    small = gcsr.condense(data, undirected=True, **SMALL)
    assert small.provenance["loading"] == {"undirected": True}
    assert gcsr.evaluate(small, data, **quick).nodes == 3
    with pytest.raises(InputError, match="undirected cannot be used"):
        gcsr.condense(make(), undirected=True, **SMALL)


def test_the_first_graph_of_a_dataset(make):
    data = make().to_pyg()
    assert gcsr.load(_Dataset(data)).content_hash == make().content_hash
    with pytest.warns(InputWarning, match="the first of the 2 graphs"):
        assert gcsr.load(_Dataset(data, data)).content_hash == make().content_hash
    for several in ([data, data], (data, data, data)):
        with pytest.raises(
            InputError, match=r"got a (list|tuple) with a PyG Data; .* pass data\[0\]\.$"
        ):
            gcsr.load(several)
    with pytest.raises(InputError, match="dataset of at least one graph, got none"):
        Graph.from_pyg([])


def test_the_split_of_an_ogb_dataset(make):
    class Ogb(_Dataset):
        def get_idx_split(self):
            return {"train": np.array([0, 1, 2]), "valid": torch.tensor([3]), "test": [4, 5]}

    data = make().to_pyg()
    for part in ("train", "val", "test"):
        del data[f"{part}_mask"]
    assert gcsr.load(Ogb(data)).content_hash == make().content_hash


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("weights", [None, [2.0, 2.0, 1.0, 1.0, 0.5, 0.5]])
def test_adj_t_instead_of_edge_index(make, weights):
    graph = make(edge_weights=weights)
    data = graph.to_pyg()
    matrix = graph.adjacency.T.tocsr()
    arrays = (
        torch.from_numpy(np.array(one)) for one in (matrix.indptr, matrix.indices, matrix.data)
    )
    data.adj_t = torch.sparse_csr_tensor(*arrays, size=(6, 6))
    del data.edge_index
    data.pop("edge_weight", None)
    assert gcsr.load(data).content_hash == graph.content_hash

    class SparseTensor:  # as that of torch_sparse
        def coo(self):
            coo = matrix.tocoo()
            value = None if weights is None else torch.from_numpy(coo.data.copy())
            return torch.from_numpy(coo.row), torch.from_numpy(coo.col), value

    data.adj_t = SparseTensor()
    assert gcsr.load(data).content_hash == graph.content_hash


def test_hetero_data_with_one_node_type(make):
    data = make().to_pyg()
    assert gcsr.load(_hetero(data, "cites")).content_hash == make().content_hash
    with pytest.warns(InputWarning, match="the 2 edge types"):
        read = gcsr.load(_hetero(data, "cites", "follows"))
    assert read.content_hash == make().content_hash


def test_hetero_data_with_several_node_types_is_refused(make):
    data = _hetero(make().to_pyg(), "cites")
    nodes, width = make().x.shape
    data["author"].x = torch.ones(2, width + 1)
    sentence = r"one node type, got .* paper, author; several .* planned .*to_homogeneous\(\) .*"
    sentence += r"\(PyG fills narrower features with zeros\).* are directed: pass undirected=True"
    with pytest.raises(InputError, match=sentence):
        gcsr.condense(data, nodes=3)
    # What the sentence says of PyG.
    data["author"].y = torch.tensor([0, 1])
    for part in ("train_mask", "val_mask", "test_mask"):
        data["author"][part] = torch.zeros(2, dtype=torch.bool)
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 1], [0, 1]])
    one = data.to_homogeneous()
    with pytest.raises(InputError, match="undirected=True"):
        gcsr.load(one)
    with pytest.warns(InputWarning, match="edge_type"):
        read = gcsr.load(one, undirected=True)
    assert read.x[:, width].tolist() == [0] * nodes + [1] * 2


# -- arrays -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, torch.from_numpy])
def test_edge_index_x_and_y(make, form):
    graph, parts = make(), {"train": [0, 1, 2], "val": [3], "test": [4, 5]}
    edges, x, y = graph.to_pyg().edge_index.numpy(), graph.x.numpy(), graph.y.numpy()
    for listed in (edges, np.ascontiguousarray(edges.T)):
        read = gcsr.load((form(listed), form(x), form(y)), **parts)
        assert read.content_hash == graph.content_hash
    assert gcsr.condense((edges, x, y), **SMALL, **parts).num_nodes == 3
    with pytest.raises(
        InputError, match=r"order must be \(edge_index, x, y\), got .*\(6, 3\) first"
    ):
        gcsr.load((x, edges, y), **parts)
    assert gcsr.load((sp.csr_array(graph.adjacency), x, y), **parts).num_edges == 6


def test_two_by_two_edges_are_sources_and_targets(make):
    graph = make(edges=[[0, 1], [1, 0]])
    assert graph.adjacency[0, 1] == graph.adjacency[1, 0] == 1
    assert make(edges=[[0, 1], [2, 3]], undirected=True).adjacency[0, 2] == 1


def test_other_objects_are_one_sentence(make, tmp_path):
    data = make().to_pyg()
    for wrong in ({}, 3, None, (1, 2), gcsr.condense(make(), **SMALL), [data], [data] * 3):
        with pytest.raises(InputError, match=r"graph must be a gcsr\.Graph, got .*PyG Data"):
            gcsr.condense(wrong, nodes=3)
    with pytest.raises(InputError, match="edge_index must have rows of equal length"):
        gcsr.load(([[0, 1], [1]], data.x, data.y))
    with pytest.raises(InputError, match="memory must be None for an object"):
        gcsr.load(make().to_pyg(), memory=3)
    path = make().to_npz(tmp_path / "g.npz")
    with pytest.raises(InputError, match="split is an option for objects"):
        gcsr.load(path, split=1)
    assert gcsr.load(make(), features="rows").feature_scaling == "rows"


def test_networkx_without_classes():
    graph = nx.cycle_graph(4)
    with pytest.raises(InputError, match="y must have one class per node, got None"):
        gcsr.load(graph, x=np.eye(4), y=None)


def test_options_that_a_graph_does_not_take_are_refused(make):
    graph = make()
    for wrong, sentence in (
        ({"inductive": True}, "inductive must be False for this gcsr.Graph, got True"),
        ({"split": 3}, "split is not an option for a gcsr.Graph"),
        ({"feature": "rows"}, r"feature is not .* \(did you mean features\?\)"),
    ):
        with pytest.raises(InputError, match=sentence):
            gcsr.load(graph, **wrong)
    assert gcsr.load(graph, inductive=False, undirected=True) is graph


# -- NetworkX ---------------------------------------------------------------------------------------


def _networkx(graph, kind=nx.Graph):
    made = kind()
    for node in range(graph.num_nodes):
        part = next(p for p in ("train", "val", "test") if node in getattr(graph, p))
        made.add_node(
            f"n{node}", x=graph.x[node].tolist(), y="abc"[graph.y[node]], **{f"{part}_mask": True}
        )
    coo = graph.adjacency.tocoo()
    for a, b, w in zip(coo.row, coo.col, coo.data, strict=True):
        if a < b or kind is nx.DiGraph:
            made.add_edge(f"n{a}", f"n{b}", **({"weight": float(w)} if graph.is_weighted else {}))
    return made


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph])
@pytest.mark.parametrize("weights", [None, [2.0, 2.0, 1.0, 1.0, 0.5, 0.5]])
def test_networkx(make, kind, weights):
    graph = make(edge_weights=weights)
    read = gcsr.load(_networkx(graph, kind))
    assert read.content_hash == graph.content_hash
    assert read.notes == ("classes 0..2 are a, b, c",)
    assert gcsr.condense(_networkx(graph), **SMALL).num_nodes == 3


def test_networkx_with_names_nodes_and_arrays():
    club = nx.karate_club_graph()
    parts = {"train": [0, 33, 1, 32], "val": [2, 31], "test": range(5, 30)}
    graph = Graph.from_networkx(club, x=np.eye(34), y="club", **parts)
    assert graph.is_weighted and graph.num_classes == 2 and graph.train.tolist() == [0, 1, 32, 33]
    nx.set_node_attributes(club, dict(club.degree), "degree")
    nx.set_node_attributes(club, nx.clustering(club), "clustering")
    nx.set_edge_attributes(club, "friend", "kind")
    with pytest.warns(InputWarning, match="attributes that are ignored: kind"):
        two = Graph.from_networkx(club, x=["degree", "clustering"], y="club", **parts)
    assert two.x[0].tolist() == pytest.approx([club.degree[0], nx.clustering(club, 0)])
    del club.nodes[3]["club"]
    assert Graph.from_networkx(club, x=["degree"], y="club", **parts, weight="weight").y[3] == -1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"y": "club"},
            r"x must be .*\(club\), got none; x=numpy.eye\(34\) stands for no features",
        ),
        ({"x": ["club"], "y": "club"}, "x: 'club' must be numbers"),
        ({"x": ["age"], "y": "club"}, r"x must be .* of the nodes \(club\), got 'age'"),
        ({"x": np.eye(34)}, r"y must be .* of the nodes \(club\), got 'y'"),
        ({"x": np.eye(34), "y": "club", "train": [99]}, "train must be ids of nodes, got 99"),
        ({"x": np.eye(34), "y": np.zeros((34, 2, 2))}, r"y must .* got shape \(34, 2, 2\)"),
        ({"x": np.eye(34), "y": "club", "train": [[0]]}, r"train must be ids of nodes, got \[0\]"),
        ({"y": "club", "weigth": "km"}, r"weigth is not an option of .* \(did you mean weight\?\)"),
        ({"x": np.eye(34), "y": "club", "weight": "km"}, r"weight must be .*\(weight\), got 'km'"),
    ],
)
def test_what_networkx_lacks_is_one_sentence(options, sentence):
    with pytest.raises(InputError, match=sentence):
        gcsr.load(nx.karate_club_graph(), **options)


# -- pandas -----------------------------------------------------------------------------------------


class _Frame(dict):
    """As much of a pandas DataFrame as is used, where pandas is not installed."""

    columns = property(list)
    index = property(lambda self: np.arange(len(next(iter(self.values())))))


_Frame.__module__ = "pandas.core.frame"


def _frame(values):
    columns = {name: np.asarray(column) for name, column in values.items()}
    try:
        import pandas as pd
    except ImportError:
        return _Frame(columns)
    return pd.DataFrame(columns)


def _tables(graph):
    coo = graph.adjacency.tocoo()
    ids = np.array([f"n{node}" for node in range(graph.num_nodes)])
    edges = {"source": ids[coo.row], "target": ids[coo.col]}
    if graph.is_weighted:
        edges["weight"] = coo.data
    nodes = {"id": ids, "y": np.array(list("abc"))[graph.y]}
    nodes |= {f"f{i}": graph.x[:, i].numpy() for i in range(graph.num_features)}
    for part in ("train", "val", "test"):
        nodes[part] = np.isin(np.arange(graph.num_nodes), getattr(graph, part))
    return edges, nodes


@pytest.mark.parametrize("weights", [None, [2.0, 2.0, 1.0, 1.0, 0.5, 0.5]])
def test_pandas_frames(make, weights):
    graph = make(edge_weights=weights)
    edges, nodes = map(_frame, _tables(graph))
    assert gcsr.load((edges, nodes)).content_hash == graph.content_hash
    assert gcsr.condense((edges, nodes), **SMALL).num_nodes == 3
    with pytest.raises(InputError, match=r"got a pandas \w+; .*from_pandas\(edges, nodes\)"):
        gcsr.load(edges)


def test_pandas_frames_with_other_columns(make):
    edges, nodes = _tables(make())
    named = {"from": edges["source"], "to": edges["target"], "kind": np.zeros(6)}
    y = np.array([0, 1, 2, 0, np.nan, 2])
    table = {"node": nodes["id"], "label": y, "name": nodes["id"], "f1": nodes["f1"]}
    options = {"source": "from", "target": "to", "node": "node", "y": "label"}
    with pytest.warns(InputWarning, match="attributes that are ignored: kind, name"):
        read = Graph.from_pandas(
            _frame(named),
            _frame(table),
            **options,
            train=["n0", "n1", "n2"],
            val=["n3"],
            test=["n5"],
        )
    assert read.x.ravel().tolist() == make().x[:, 1].tolist()
    assert read.y.tolist() == [0, 1, 2, 0, -1, 2] and read.val.tolist() == [3]
    assert (read.adjacency != make().adjacency).nnz == 0


def test_what_pandas_frames_lack_is_one_sentence(make):
    edges, nodes = _tables(make())
    with pytest.raises(InputError, match=r"source must be a column of edges \(.*\), got 'from'"):
        Graph.from_pandas(_frame(edges), _frame(nodes), source="from")
    few = {name: column[:3] for name, column in nodes.items()}
    with pytest.raises(InputError, match="source must be ids of nodes, got 'n3'"):
        Graph.from_pandas(_frame(edges), _frame(few))
    twice = nodes | {"id": np.array(["n0"] * 6)}
    with pytest.raises(InputError, match="ids of nodes must differ, got 5 repeated"):
        Graph.from_pandas(_frame(edges), _frame(twice))
    with pytest.raises(InputError, match="nodes must be a pandas DataFrame, got list"):
        Graph.from_pandas(_frame(edges), [])


def test_a_real_frame_with_an_index_and_missing_classes(make):
    pd = pytest.importorskip("pandas")
    edges, nodes = _tables(make())
    frame = pd.DataFrame(nodes).set_index("id")
    assert gcsr.load((pd.DataFrame(edges), frame)).content_hash == make().content_hash
    frame["y"] = pd.array([0, 1, 2, 0, None, 2], dtype="Int64")
    with pytest.warns(InputWarning, match="test: 1 node without a label left out"):
        assert gcsr.load((pd.DataFrame(edges), frame)).test.tolist() == [5]


@pytest.mark.parametrize("form", [np.asarray, torch.tensor, list])
def test_networkx_nodes_with_arrays(make, form):
    graph = make()
    made = _networkx(graph)
    for node, row in zip(made.nodes, graph.x.tolist(), strict=True):
        made.nodes[node]["x"] = form(row)
        made.nodes[node]["y"] = graph.y[int(node[1:])]
    assert gcsr.load(made).content_hash == graph.content_hash


def test_attributes_of_the_split_are_true_or_false(make):
    made = _networkx(make())
    for node in made.nodes:
        if "test_mask" not in made.nodes[node]:
            made.nodes[node]["test_mask"] = float("nan")  # as a column of pandas with gaps
    assert gcsr.load(made).content_hash == make().content_hash
    made.nodes[next(iter(made.nodes))]["test_mask"] = "False"
    with pytest.raises(InputError, match=r"test: 'test_mask' must be true or false .* got 'False'"):
        gcsr.load(made)


def test_a_graph_through_networkx_condenses_as_the_graph_itself():
    graph = planted_graph()
    assert torch.equal(
        gcsr.condense(_networkx(graph), nodes=6, method="random", device="cpu").x,
        gcsr.condense(graph, nodes=6, method="random", device="cpu").x,
    )
