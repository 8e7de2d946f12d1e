"""To and from PyG's Data."""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pytest
import torch

import gcsr
from gcsr.data.graph import Graph
from gcsr.utils.errors import InputError, InputWarning


@pytest.mark.parametrize("weights", [None, [2.0, 2.0, 1.0, 1.0, 0.5, 0.5]])
def test_round_trip(make, weights):
    graph = make(edge_weights=weights)
    data = graph.to_pyg()
    data.validate()
    assert ("edge_weight" in data) is (weights is not None)
    back = Graph.from_pyg(data, name="back", inductive=True)
    assert back.content_hash == graph.content_hash
    assert (back.name, back.inductive) == ("back", True)


def test_data_does_not_share_memory(make):
    graph = make(edge_weights=[2.0, 2.0, 1.0, 1.0, 0.5, 0.5])
    edges, weights = graph.adjacency.indices.copy(), graph.adjacency.data.copy()
    data = graph.to_pyg()
    for name in ("x", "y", "edge_index", "edge_weight"):
        data[name].zero_()
    assert graph.x.any()
    assert graph.y.any()
    assert (graph.adjacency.indices == edges).all()
    assert (graph.adjacency.data == weights).all()


@pytest.mark.parametrize(
    ("split", "sentence"),
    [
        (3, "split must be None or 0, as no mask of data has several columns, got 3"),
        ("random", "split must be an integer, the column of the masks, got 'random'"),
    ],
)
def test_a_split_that_cannot_be_chosen_is_refused(make, split, sentence):
    assert Graph.from_pyg(make().to_pyg(), split=0).content_hash == make().content_hash
    with pytest.raises(InputError, match=f"^{sentence}"):
        Graph.from_pyg(make().to_pyg(), split=split)


def test_columns_of_masks_are_splits(make):
    data = make().to_pyg()
    other = make(train=[3, 4, 5], val=[0], test=[1, 2])
    for mask in ("train_mask", "val_mask", "test_mask"):
        data[mask] = torch.stack([data[mask], other.to_pyg()[mask]], dim=1)
    note = "split 0 of the 2 splits of the masks (columns) is used"
    with pytest.warns(InputWarning, match=rf"^{re.escape(note)}\.$"):
        first = Graph.from_pyg(data)
    assert first.content_hash == make().content_hash and first.notes == (note,)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Graph.from_pyg(data, split=0).notes == (note,)
        read = Graph.from_pyg(data, split=np.int64(1))
    assert read.content_hash == other.content_hash
    notes = gcsr.condense(read, nodes=3, method="random").provenance["notes"]
    assert notes[0] == "split 1 of the 2 splits of the masks (columns) is used"
    for split in (2, -1):
        sentence = rf"split must be 0\.\.1, as data.train_mask has 2 columns, got {split}"
        with pytest.raises(InputError, match=sentence):
            Graph.from_pyg(data, split=split)


def test_labels_as_a_column(make):
    data = make().to_pyg()
    data.y = data.y[:, None]
    assert Graph.from_pyg(data).content_hash == make().content_hash


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_edge_attributes_are_weights_where_asked_for_by_name(make, shape):
    graph = make(edge_weights=[2.0, 2.0, 1.0, 1.0, 0.5, 0.5])
    data = graph.to_pyg()
    data.edge_attr = data.edge_weight.reshape(shape)
    del data.edge_weight
    read = Graph.from_pyg(data, weight="edge_attr")
    assert read.content_hash == graph.content_hash and read.notes == ()


@pytest.mark.parametrize("shape", [(6,), (6, 1), (6, 2)])
def test_relation_types_are_no_weights_and_this_is_said(make, shape):
    data = make().to_pyg()
    data.edge_attr = torch.arange(math.prod(shape)).reshape(shape) % 2
    with pytest.warns(InputWarning, match=r"data.edge_attr is ignored") as caught:
        read = Graph.from_pyg(data)
    advised = "weight='edge_attr' uses it" in str(caught[0].message)
    assert advised == (math.prod(shape) == 6)  # several columns are no weight
    assert read.content_hash == make().content_hash  # type 0 keeps its edges
    assert (
        "data.edge_attr is ignored"
        in gcsr.condense(read, nodes=3, method="random").provenance["notes"][0]
    )


def test_edge_weight_comes_before_edge_attr(make):
    data = make().to_pyg()
    data.edge_weight = torch.full((6,), 3.0)
    data.edge_attr, data.edge_type = torch.full((6,), 7.0), torch.zeros(6)
    with pytest.warns(InputWarning) as caught:
        assert set(Graph.from_pyg(data).adjacency.data) == {3.0}
    assert {str(one.message).split()[0] for one in caught} == {"data.edge_attr", "data.edge_type"}


def test_weights_that_cannot_be_used_are_one_sentence(make):
    data = make().to_pyg()
    with pytest.raises(InputError, match=r"weight must be the name of a tensor .*, got 'cost'"):
        Graph.from_pyg(data, weight="cost")
    data.edge_attr = torch.ones(6, 2)
    with pytest.raises(InputError, match=r"data.edge_attr must have one weight per edge \(6\)"):
        Graph.from_pyg(data, weight="edge_attr")


@pytest.mark.parametrize("field", ["x", "edge_index", "y"])
def test_missing_field_is_named(make, field):
    data = make().to_pyg()
    data.num_nodes = 6
    del data[field]
    with pytest.raises(InputError, match=f"^data.{field} must be a tensor.* got None"):
        Graph.from_pyg(data)


def test_directed_data_needs_the_callers_word(make):
    data = make().to_pyg()
    data.edge_index = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    with pytest.raises(InputError, match="undirected=True"):
        Graph.from_pyg(data)
    assert Graph.from_pyg(data, undirected=True).content_hash == make().content_hash


def test_sparse_and_differentiable_features(make):
    data = make().to_pyg()
    data.x = data.x.to_sparse().requires_grad_()
    graph = Graph.from_pyg(data)
    assert not graph.x.requires_grad
    assert graph.content_hash == make().content_hash


def test_scaling_on_the_way_in(make):
    assert Graph.from_pyg(make().to_pyg(), features="rows").feature_scaling == "rows"
