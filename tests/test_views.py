from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcsr.data.stored_graph import open_folder
from gcsr.data.views import View
from helpers import planted_graph, with_other_test_labels


@pytest.fixture
def graph():
    return planted_graph(weighted=True)


@pytest.fixture
def inductive():
    return planted_graph(weighted=True, inductive=True)


def arrays(thing: object) -> Iterator[np.ndarray]:
    """Every array that can be reached from an object."""
    if isinstance(thing, torch.Tensor):
        yield thing.numpy()
    elif isinstance(thing, sp.csr_array):
        yield from (thing.data, thing.indices, thing.indptr)
    elif is_dataclass(thing):
        for field in fields(thing):
            yield from arrays(getattr(thing, field.name))
    elif isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, tuple):
        for part in thing:
            yield from arrays(part)
    else:
        assert thing is None or isinstance(thing, str | int | bool), type(thing)


def induced(graph, nodes):
    return graph.adjacency.toarray()[np.ix_(nodes.numpy(), nodes.numpy())]


def test_transductive_condensing_sees_the_whole_graph_and_training_labels(graph):
    view = View(graph).condensing()
    visible = view.visible
    assert torch.equal(visible.x, graph.x)
    assert (visible.adjacency != graph.adjacency).nnz == 0
    assert torch.equal(visible.train, graph.train)
    hidden = torch.ones(graph.num_nodes, dtype=torch.bool)
    hidden[graph.train] = False
    assert (visible.labels[hidden] == -1).all()
    assert torch.equal(visible.train_labels, graph.y[graph.train])
    assert visible.num_nodes == graph.num_nodes
    assert visible.num_classes == 3
    assert view.every_label is None


def test_inductive_condensing_sees_the_training_subgraph(inductive):
    visible = View(inductive).condensing().visible
    assert torch.equal(visible.x, inductive.x[inductive.train])
    np.testing.assert_array_equal(visible.adjacency.toarray(), induced(inductive, inductive.train))
    assert torch.equal(visible.labels, inductive.y[inductive.train])
    assert torch.equal(visible.train, torch.arange(inductive.train.numel()))
    assert visible.num_nodes == 21


@pytest.mark.parametrize("sparse", [False, True])
def test_inductive_parts_of_a_folder_are_those_in_memory(inductive, tmp_path, sparse):
    graph = replace(inductive, x=inductive.x.to_sparse_csr()) if sparse else inductive
    stored = open_folder(graph.to_folder(tmp_path / "planted"), memory=1000)
    for name in ("training", "validation", "test"):
        here, there = getattr(View(graph), name)(), getattr(View(stored), name)()
        assert there.x.layout == here.x.layout
        assert torch.equal(there.x.to_dense(), here.x.to_dense())
        assert torch.equal(there.labels, here.labels)


@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_targets(graph, inductive, split):
    ask = {"train": "training", "val": "validation", "test": "test"}[split]
    whole, part = getattr(View(graph), ask)(), getattr(View(inductive), ask)()
    nodes = getattr(graph, split)
    assert torch.equal(whole.nodes, nodes)
    assert torch.equal(whole.labels, graph.y[nodes])
    assert torch.equal(whole.x, graph.x)
    assert torch.equal(part.nodes, torch.arange(nodes.numel()))
    assert torch.equal(part.labels, graph.y[nodes])
    assert torch.equal(part.x, graph.x[nodes])
    np.testing.assert_array_equal(part.adjacency.toarray(), induced(inductive, nodes))


def test_no_test_label_can_be_reached_from_a_condensing_view(graph):
    """Labels are recoded so that a test label is a number found nowhere else in the graph."""
    y = graph.y.clone()
    y[graph.test] += 977
    marked = replace(graph, y=y, num_classes=1000)
    view = View(marked).condensing()
    for array in arrays(view):
        assert not np.isin(array, [977, 978, 979]).any()
    leaking = View(marked).condensing(leak_every_label=True)
    assert any(np.isin(array, [977, 978, 979]).any() for array in arrays(leaking))


def test_condensing_views_do_not_change_with_test_labels(graph):
    ours, theirs = (View(g).condensing() for g in (graph, with_other_test_labels(graph)))
    for a, b in zip(arrays(ours), arrays(theirs), strict=True):
        np.testing.assert_array_equal(a, b)


def test_inductive_condensing_sees_nothing_of_test_nodes(inductive):
    x = inductive.x.clone()
    x[inductive.test] = 777.0
    ours, theirs = View(inductive).condensing(), View(replace(inductive, x=x)).condensing()
    for a, b in zip(arrays(ours), arrays(theirs), strict=True):
        np.testing.assert_array_equal(a, b)


def test_leak_has_to_be_asked_for(graph, inductive):
    leak = View(graph).condensing(leak_every_label=True)
    assert torch.equal(leak.every_label, graph.y)
    assert (leak.visible.labels == View(graph).condensing().visible.labels).all()
    inside = View(inductive).condensing(leak_every_label=True)
    assert torch.equal(inside.every_label, inductive.y[inductive.train])


def test_source_describes_the_graph(graph):
    source = View(graph).condensing().source
    assert source.name == "planted"
    assert source.content_hash == graph.content_hash
    assert (source.num_nodes, source.num_edges) == (graph.num_nodes, graph.num_edges)
    assert (source.num_features, source.num_classes) == (12, 3)
    assert not source.inductive


def test_looking_does_not_change_the_graph(graph):
    before = replace(graph, x=graph.x.clone(), y=graph.y.clone()).content_hash
    view = View(graph)
    labels = view.condensing().visible.labels
    labels.fill_(0)
    view.test(), view.validation(), view.training()
    assert replace(graph).content_hash == before
