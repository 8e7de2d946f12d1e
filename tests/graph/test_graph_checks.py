"""What a graph accepts, what it refuses, and the sentence it refuses with."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcsr.data.graph import Graph
from gcsr.utils.errors import InputError

# -- accepted -----------------------------------------------------------------------------------


def test_plain_graph(make):
    graph = make()
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == (6, 6, 3)
    assert graph.num_classes == 3
    assert graph.test.tolist() == [4, 5]
    assert (graph.name, graph.inductive, graph.feature_scaling) == ("graph", False, "keep")
    assert not graph.is_weighted
    assert repr(graph) == (
        "Graph(graph: 6 nodes, 6 edges, 3 features, 3 classes, split 3/1/2, transductive)"
    )


def test_nbytes_counts_every_array(make):
    graph = make()
    a = graph.adjacency
    assert graph.nbytes == 6 * 3 * 4 + 6 * 8 + a.data.nbytes + a.indices.nbytes + a.indptr.nbytes


def test_unlabeled_nodes_outside_the_split(make):
    graph = make(y=[0, 1, 2, 0, -1, 2], test=[5])
    assert graph.y.tolist() == [0, 1, 2, 0, -1, 2]
    assert graph.num_classes == 3


def test_isolated_nodes_and_no_edges_at_all(make):
    assert np.diff(make().adjacency.indptr)[5] == 0
    assert make(edges=np.empty((2, 0), dtype=np.int64)).num_edges == 0


def test_rows_of_zeros(make):
    x = np.ones((6, 3))
    x[2] = 0
    assert not make(x=x, features="rows").x[2].any()


def test_class_without_training_nodes_stays_a_class(make):
    graph = make(train=[0, 1], val=[2, 3])
    assert graph.num_classes == 3
    assert 2 not in graph.y[graph.train]


def test_class_without_any_node_by_number_of_classes(make):
    assert make(num_classes=5).num_classes == 5


def test_weighted_edges(make):
    graph = make(edge_weights=[2.0, 2.0, 1.0, 1.0, 0.5, 0.5])
    assert graph.is_weighted
    assert graph.adjacency[0, 1] == graph.adjacency[1, 0] == 2


def test_directed_edges_need_the_callers_word(make):
    edges = [[0, 1, 3], [1, 2, 4]]
    with pytest.raises(InputError, match="undirected=True"):
        make(edges=edges)
    assert make(edges=edges, undirected=True).content_hash == make().content_hash


def test_self_loops_and_duplicates_change_nothing(make):
    edges = np.concatenate([make().to_pyg().edge_index.numpy()] * 2 + [[[2], [2]]], axis=1)
    assert make(edges=edges).content_hash == make().content_hash


@pytest.mark.parametrize(
    "form",
    [sp.csr_array, sp.coo_matrix, sp.csc_matrix, lambda a: sp.csr_array(a.astype(bool))],
)
def test_sparse_matrix_as_edges(make, form):
    dense = make().adjacency.toarray()
    assert make(edges=form(dense)).content_hash == make().content_hash


def test_sparse_matrix_with_weights(make):
    dense = make().adjacency.toarray() * 3
    assert make(edges=sp.csr_array(dense)).is_weighted
    assert not make(edges=sp.csr_array(dense), weighted=False).is_weighted


@pytest.mark.parametrize("dtype", [bool, np.int64, np.float32])
@pytest.mark.parametrize("weighted", [None, True, False])
def test_stored_zero_is_no_edge(make, dtype, weighted):
    matrix = sp.csr_array(make().adjacency.toarray().astype(dtype))
    matrix.data[:2] = 0  # (0, 1) and (1, 0)
    graph = make(edges=matrix, weighted=weighted)
    assert graph.num_edges == 4
    assert graph.adjacency[0, 1] == 0


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, torch.tensor, np.ndarray.tolist])
def test_forms_of_features(make, form):
    x = np.arange(18, dtype=np.float64).reshape(6, 3)
    graph = make(x=form(x))
    assert graph.x.dtype == torch.float32
    assert graph.content_hash == make().content_hash


def test_masks_instead_of_ids(make):
    masks = {"train": [1, 1, 1, 0, 0, 0], "val": [0, 0, 0, 1, 0, 0], "test": [0, 0, 0, 0, 1, 1]}
    as_arrays = make(**{split: np.array(mask, dtype=bool) for split, mask in masks.items()})
    as_tensors = make(**{split: torch.tensor(mask).bool() for split, mask in masks.items()})
    assert as_arrays.content_hash == as_tensors.content_hash == make().content_hash


@pytest.mark.filterwarnings("error")
def test_labels_in_half_precision(make):
    classes = make().y.numpy()
    assert np.array_equal(make(y=classes.astype(np.float16)).y.numpy(), classes)


def test_labels_as_a_column(make):
    assert make(y=np.array([[0], [1], [2], [0], [1], [2]])).content_hash == make().content_hash


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor, sp.csr_array])
def test_truth_values_are_zeros_and_ones(make, kind):
    x = np.arange(18).reshape(6, 3) % 2 == 0
    graph = make(x=kind(x))
    assert torch.equal(graph.x, torch.from_numpy(x).float())
    if kind is not sp.csr_array:
        y = kind(x[:, 0])
        assert make(x=x, y=y).y.tolist() == x[:, 0].tolist()


@pytest.mark.parametrize("nodes", [[0, 1, 3], np.array([3, 1, 0, 1]), [1, 1, 0, 1, 0, 0]])
def test_a_part_of_a_graph_by_ids_or_by_a_mask(make, nodes):
    nodes = np.array(nodes, bool) if len(nodes) == 6 else nodes
    part = make(test=None).subgraph(nodes)
    assert torch.equal(part.y, make().y[[0, 1, 3]])


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        ([-1, 0, 1], r"nodes must be node ids 0\.\.5, got -1"),
        ([0, 6], r"nodes must be node ids 0\.\.5, got 6"),
        ([0.5, 1], "nodes must be a list of node ids or a boolean mask, got float64"),
        ([True, False], "nodes must have 6 entries as a mask, got 2"),
        ([1, 1, 0, 1, 0, 0], "nodes must be .*, got 0 and 1 for every node"),
    ],
)
def test_a_part_of_a_graph_is_of_its_nodes(make, nodes, sentence):
    with pytest.raises(InputError, match=sentence):
        make().subgraph(nodes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"inductive": "no"}, "inductive must be true or false, got 'no'"),
        ({"undirected": "no"}, "undirected must be true or false, got 'no'"),
        ({"num_classes": "3"}, "num_classes must be an integer >= 0, got '3'"),
        ({"num_classes": 3.5}, "num_classes must be an integer >= 0, got 3.5"),
    ],
)
def test_settings_of_other_types_are_refused(make, changes, sentence):
    with pytest.raises(InputError, match=sentence):
        make(**changes)


def test_settings_may_be_scalars_of_numpy(make):
    graph = make(inductive=np.True_, undirected=np.False_, num_classes=np.int64(4))
    assert (graph.inductive, graph.num_classes) == (True, 4)
    assert type(graph.inductive) is bool


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"train": [0, 1]}, r"train must be a torch\.int64 tensor, got list; Graph\.from_arrays"),
        ({"val": torch.tensor([3.0])}, r"val must be a torch\.int64 tensor, got torch\.float32"),
        ({"x": torch.tensor(1.0)}, r"x must have one row per node .*, got shape \(\)"),
    ],
)
def test_fields_of_other_types_are_refused(make, changes, sentence):
    with pytest.raises(InputError, match=sentence):
        dataclasses.replace(make(), **changes)


# -- refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"x": np.full((6, 3), np.nan)},
            "x must be finite, got NaN or infinity in 6 rows .first: 0.; torch.nan_to_num",
        ),
        ({"x": np.full((6, 3), np.inf)}, "x must be finite"),
        ({"x": np.full((6, 3), 1e300)}, "x must be finite"),
        ({"x": np.ones(6)}, r"x must be a matrix .*, got shape \(6,\); x\.reshape"),
        ({"x": np.float32(1)}, r"x must be a matrix .*, got shape \(\)\."),
        ({"x": torch.ones(6)}, r"x must be a matrix .*, got shape \(6,\); x\.reshape"),
        (
            {"x": np.ones((6, 0))},
            r"x must have .* at least one column, got shape \(6, 0\); torch\.ones",
        ),
        ({"x": np.ones((5, 3))}, r"y must have one class per row of x \(5\), got shape \(6,\)"),
        ({"x": np.array([["a"]] * 6)}, r"x must be real numbers, got texts such as 'a'\.$"),
        ({"x": ["a word"] * 6}, r"x must be real numbers, got texts such as 'a word'\.$"),
        (
            {"x": np.array([["1"]] * 6)},
            r"got texts such as '1'; x\.astype\('float32'\) converts it",
        ),
        ({"x": np.ones((6, 3), dtype=complex)}, "x must be real .*, got complex128; x.real is"),
        ({"x": torch.ones(6, 3) + 0j}, "x must be real .*, got torch.complex64; x.real is"),
        ({"x": [[1], [1, 2]] * 3}, "x must have rows of equal length"),
        ({"edges": [[0, 1, 2]]}, r"edges must be a 2 x E or E x 2 array .*, got shape \(1, 3\)"),
        ({"edges": [[0], [1, 2]]}, "edges must have rows of equal length"),
        (
            {"edges": [["p0"], ["p1"]]},
            "edges must be integers, got texts such as 'p0'; node ids of NetworkX graphs and of pandas",
        ),
        (
            {"edges": [["0"], ["1"]]},
            r"got texts such as '0'; edges\.astype\('int64'\) converts them",
        ),
        ({"edges": [[0, 9], [9, 0]]}, r"edges must be node ids 0\.\.5, got 9\."),
        (
            {"edges": sp.csr_array(np.ones((5, 5)))},
            r"edges must be a 6 x 6 matrix.*got shape \(5, 5\)",
        ),
        ({"edges": sp.csr_array(np.ones((6, 5)))}, "edges must be a square matrix"),
        (
            {"edges": sp.csr_array(np.ones((6, 6))), "edge_weights": [1.0]},
            "edge_weights must be None where edges are a sparse matrix",
        ),
        ({"edge_weights": [1.0]}, "edge_weights must have one number per edge"),
        ({"y": [0, 1, 2, 0, 1]}, "y must have one class per row"),
        ({"y": [0, 1, 2, 0, 1, -2]}, "y must be >= -1 .*, got -2"),
        (
            {"y": [0, 1, 2, 0, 1, 3], "num_classes": 3},
            r"y must be below num_classes \(3\), got 3; leave num_classes out",
        ),
        ({"y": list("abcabc")}, "y must be integers .*, got texts such as 'a'; numpy.unique"),
        (
            {"y": [0.0, 1.0, 2.5, 0.0, 1.0, 2.0]},
            "y must be integers .*, got numbers such as 2.5; this library is for node classification",
        ),
        ({"y": [0.0, 1.0, np.inf, 0.0, 1.0, 2.0]}, "num_classes must be at most"),
        (
            {"y": np.eye(6, dtype=int)},
            r"y must be one class per node, or .*, got shape \(6, 6\) without such a row; y\.argmax",
        ),
        ({"y": [0] * 6}, "y must have at least two classes, got 1"),
        ({"y": [0, 0, 0, 0, 0, -1], "test": [4]}, "y must have at least two classes, got 1"),
        ({"train": []}, "train must have at least one node"),
        ({"val": np.zeros(6, dtype=bool)}, "val must have at least one node"),
        (
            {"test": [3, 4]},
            r"val and test must be disjoint, got 1 node in both \(first: 3\); numpy\.setdiff1d",
        ),
        ({"train": [0, 3]}, "train and val must be disjoint"),
        ({"train": [0, 4]}, "train and test must be disjoint"),
        ({"train": [0, 0]}, "train must not repeat nodes, got 1 repeated; numpy.unique"),
        ({"val": [6]}, r"val must be node ids 0\.\.5, got 6"),
        ({"val": [-1]}, "val must be node ids .*, got -1"),
        ({"val": [0.5]}, "val must be a list of node ids or a boolean mask, got float64"),
        ({"val": [[3]]}, r"val must be a list of node ids .*, got shape \(1, 1\)"),
        ({"val": np.ones(4, dtype=bool)}, "val must have 6 entries as a mask, got 4"),
        (
            {"y": [0, 1, 2, -1, 1, 2]},
            "val must have at least one node, got none, and no class has two training nodes",
        ),
        (
            {"train": [1, 1, 0, 0, 0, 0]},
            r"train must .*, got 0 and 1 for every node; train\.astype",
        ),
        (
            {"edges": np.zeros((6, 6))},
            r"edges must be .*; scipy\.sparse\.csr_array\(edges\) converts",
        ),
        ({"edges": [[1, 6], [6, 1]]}, r"edges must be .*, got 6; subtract 1 from ids"),
        ({"features": "minmax"}, "features.*keep, rows, stand"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_refused_with_one_sentence(make, changes, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        make(**changes)
    assert "\n" not in str(caught.value)


# -- never changed ------------------------------------------------------------------------------


def test_graph_cannot_be_assigned_to(make):
    with pytest.raises(dataclasses.FrozenInstanceError):
        make().name = "other"


def test_adjacency_arrays_cannot_be_changed(make):
    for graph in (make(), make(edge_weights=np.full(6, 2.0)), make().scaled("rows")):
        for array in (graph.adjacency.data, graph.adjacency.indices, graph.adjacency.indptr):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


@pytest.mark.parametrize("form", [np.asarray, torch.tensor])
def test_graph_does_not_share_memory_with_what_it_was_made_from(make, form):
    x, y = form(np.ones((6, 3), dtype=np.float32)), form(np.array([0, 1, 2, 0, 1, 2]))
    graph = make(x=x, y=y)
    before = graph.content_hash
    x[0] = 7
    y[0] = 2
    assert torch.equal(graph.x, torch.ones(6, 3))
    assert graph.y.tolist() == [0, 1, 2, 0, 1, 2]
    assert make(x=graph.x, y=graph.y).content_hash == before


# -- identity -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        ("a", r"nodes must be a list of node ids or a boolean mask, got shape \(\)"),
        ([0.5], "nodes must be a list of node ids or a boolean mask, got float64"),
        ([0, 6], r"nodes must be node ids 0\.\.5, got 6\.$"),
        ([0, -1], r"nodes must be node ids 0\.\.5, got -1\.$"),
        (np.ones(5, bool), "nodes must have 6 entries as a mask, got 5"),
        ([], "nodes must have at least one node, got none"),
        (np.zeros(6, bool), "nodes must have at least one node, got none"),
    ],
)
def test_nodes_of_a_subgraph_are_checked(make, nodes, sentence):
    with pytest.raises(InputError, match=f"^{sentence}"):
        make().subgraph(nodes)


def test_content_hash_ignores_the_name(make):
    assert make(name="a").content_hash == make(name="b").content_hash
    assert make().renamed("c").content_hash == make().content_hash
    assert make().renamed("c").name == "c"


def _nudged(array: np.ndarray) -> np.ndarray:
    changed = np.array(array, dtype=np.float32)
    changed[-1, -1] = np.nextafter(changed[-1, -1], np.float32(np.inf))
    return changed


@pytest.mark.parametrize(
    "changes",
    [
        {"x": _nudged(np.arange(18).reshape(6, 3))},
        {"x": np.arange(18).reshape(6, 3)[:, :2]},
        {"edges": [[0, 1], [1, 0]]},
        {"edges": [[0, 1, 1, 2, 3, 5], [1, 0, 2, 1, 5, 3]]},
        {"edge_weights": [1.0, 1.0, 1.0, 1.0, 2.0, 2.0]},
        {"y": [0, 1, 2, 0, 1, 1]},
        {"train": [0, 1]},
        {"val": [3, 5], "test": [4]},
        {"test": [5]},
        {"num_classes": 4},
        {"features": "rows"},
    ],
)
def test_content_hash_sees_every_change(make, changes):
    assert make(**changes).content_hash != make().content_hash


def test_content_hash_does_not_confuse_neighboring_arrays(make):
    """Moving a node from one split to the next leaves the same bytes in the same order."""
    hashes = {
        make(train=[0, 1], val=[2, 3], test=[4, 5]).content_hash,
        make(train=[0, 1, 2], val=[3], test=[4, 5]).content_hash,
        make(train=[0, 1, 2], val=[3, 4], test=[5]).content_hash,
    }
    assert len(hashes) == 3


def test_content_hash_is_the_same_in_every_process(make):
    assert make().content_hash == (
        "687dd6c375510c0e11a5db7121b6935d83a817a4a6def38b7372f976a53bc685"
    )


def test_constructor_checks_too(make):
    graph = make()
    with pytest.raises(InputError, match="train must have at least one node"):
        dataclasses.replace(graph, train=torch.empty(0, dtype=torch.long))
    assert isinstance(dataclasses.replace(graph, inductive=True), Graph)
