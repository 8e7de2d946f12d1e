from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import gcsr
from gcsr import Analysis, CondensedGraph, Graph, InputError, Random
from gcsr.analysis.statistics import LabeledGraph, statistics_of
from helpers import planted_graph

NO_MAP = {"tsne_nodes": 0}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return planted_graph()


@pytest.fixture(scope="module")
def small(graph) -> CondensedGraph:
    return Random(nodes=9).condense(graph)


def test_everything_at_once(graph, small):
    seen: dict[str, list[tuple[int, int]]] = {}

    def progress(stage: str, done: int, total: int) -> None:
        seen.setdefault(stage, []).append((done, total))

    found = gcsr.analyze(small, graph, tsne_nodes=30, nearest=2, progress=progress)
    assert isinstance(found, Analysis)
    assert seen["t-SNE map of 39 nodes"] == [(0, 1), (1, 1)]
    assert repr(found) == "Analysis(9 nodes by random against planted)"
    assert (found.dataset, found.method, found.original_part) == (
        "planted",
        "random",
        "whole graph",
    )
    assert found.original.nodes == 66 and found.condensed.nodes == 9
    assert found.original.entries == graph.num_edges
    # Random keeps training nodes as they are: each is its own nearest one.
    assert found.nearest.agreement == 1 and found.nearest.distinct == 9
    assert found.nearest.nodes.shape == (9, 2) and (found.nearest.distances[:, 0] == 0).all()
    np.testing.assert_array_equal(graph.x[found.nearest.nodes[:, 0]].numpy(), small.x.numpy())
    assert found.class_distance == pytest.approx(0)
    assert found.map.real.shape == (30, 2) and found.map.condensed.shape == (9, 2)
    assert found.map.real_classes.tolist() == graph.y[found.map.real_nodes].tolist()
    for stage, calls in seen.items():
        assert calls[-1][0] == calls[-1][1], stage
    assert {"structure", "nearest training nodes"} <= seen.keys()


def test_it_is_plain_json_and_the_same_twice(graph, small):
    first, second = (gcsr.analyze(small, graph, tsne_nodes=20, seed=5) for _ in range(2))
    text = json.dumps(first.to_dict(matrices=True), allow_nan=False)
    assert text == json.dumps(second.to_dict(matrices=True), allow_nan=False)
    assert "matrices" not in first.to_dict()
    read = json.loads(text)
    assert read["ccns_distance"]["classes"] == 3
    assert read["original"]["ccns"][0][1] == first.original.ccns[0, 1]
    assert len(read["matrices"]["gram"]) == 9
    assert read["space"] == {"name": "features", "hops": 2}


def test_nothing_is_changed(graph, small):
    before = graph.content_hash, graph.y.clone(), [t.clone() for t in (small.x, small.adjacency)]
    gcsr.analyze(small, graph, space="propagated", tsne_nodes=10)
    assert replace(graph).content_hash == before[0] and torch.equal(graph.y, before[1])
    assert torch.equal(small.x, before[2][0]) and torch.equal(small.adjacency, before[2][1])


def test_of_an_inductive_graph_the_training_nodes_are_compared():
    graph = planted_graph(inductive=True)
    small = Random(nodes=6).condense(graph)
    found = gcsr.analyze(small, graph, tsne_nodes=15)
    assert found.original_part == "training nodes" and found.original.nodes == 21
    train = graph.train.numpy()
    induced = LabeledGraph.of_classes(
        graph.adjacency[train][:, train], graph.y[graph.train].numpy(), 3
    )
    assert found.original.edge_homophily == statistics_of(induced).edge_homophily
    # Ids are those of the whole graph.
    assert set(found.map.real_nodes) <= set(train.tolist())
    np.testing.assert_array_equal(graph.x[found.nearest.nodes[:, 0]].numpy(), small.x.numpy())


def test_labels_of_every_split_are_looked_at(graph, small):
    y = graph.y.clone()
    y[graph.test] = (y[graph.test] + 1) % 3
    other = replace(graph, y=y)
    found = gcsr.analyze(small, other, check_origin=False, **NO_MAP)
    truth = gcsr.analyze(small, graph, **NO_MAP)
    assert found.original.edge_homophily < truth.original.edge_homophily


def test_unlabeled_and_soft_condensed_nodes(graph, small):
    y = small.y.clone()
    y[y == 2] = -1
    bare = gcsr.analyze(replace(small, y=y), graph, tsne_nodes=10)
    assert bare.condensed.balance.unlabeled == 3
    assert bare.ccns_distance.classes == 2
    assert bare.to_dict()["condensed"]["ccns"][2] == [None] * 3
    assert bare.map.condensed_classes.tolist().count(-1) == 3
    json.dumps(bare.to_dict(matrices=True), allow_nan=False)
    soft = replace(small, y=torch.nn.functional.one_hot(small.y, 3).float())
    hard = gcsr.analyze(small, graph, **NO_MAP).to_dict()
    assert gcsr.analyze(soft, graph, **NO_MAP).to_dict() == hard


def test_the_order_of_condensed_nodes_does_not_matter(graph):
    generator = torch.Generator().manual_seed(0)
    a = torch.rand(12, 12, generator=generator)
    small = CondensedGraph(
        torch.randn(12, 12, generator=generator), a + a.T, torch.arange(12) % 3, 3
    )
    order = torch.randperm(12, generator=generator)
    moved = CondensedGraph(small.x[order], (a + a.T)[order][:, order], small.y[order], 3)
    first, second = (gcsr.analyze(s, graph, **NO_MAP) for s in (small, moved))
    np.testing.assert_allclose(first.condensed.ccns, second.condensed.ccns)
    for name in ("edge_homophily", "weighted_edge_homophily", "node_homophily", "density_above"):
        one, other = getattr(first.condensed, name), getattr(second.condensed, name)
        assert one == pytest.approx(other), name
    assert first.silhouette == pytest.approx(second.silhouette)
    assert first.nearest.nodes[order.numpy()].tolist() == second.nearest.nodes.tolist()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"threshold": -1}, "threshold must be a finite number >= 0, got -1"),
        ({"threshold": float("nan")}, "threshold must .*, got nan"),
        ({"tsne_nodes": -1}, "tsne_nodes must be an integer >= 0, got -1"),
        ({"space": "latent"}, "space.*'latent'"),
        ({"hops": 1.5}, "hops must .*, got 1.5"),
        ({"nearest": 22}, "nearest must be an integer >= 1 and <= 21, got 22"),
    ],
)
def test_bad_settings(graph, small, settings, sentence):
    with pytest.raises(InputError, match=sentence):
        gcsr.analyze(small, graph, **settings)


def test_graphs_that_do_not_belong_together(graph, small):
    with pytest.raises(InputError, match="content hash"):
        gcsr.analyze(small, planted_graph(seed=1))
    with pytest.raises(InputError, match=r"graph must be a gcsr\.Graph, got the text"):
        gcsr.analyze(small, "cora")
    with pytest.raises(
        InputError, match=r"small must be a gcsr\.CondensedGraph, got a gcsr\.Graph"
    ):
        gcsr.analyze(graph, graph)


# -- real graphs -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def citeseer(shared_data) -> Graph:
    return gcsr.load("citeseer", root=shared_data)


def measured(graph: Graph, labels: np.ndarray):
    return statistics_of(LabeledGraph.of_classes(graph.adjacency, labels, graph.num_classes))


def test_citeseer_as_published(citeseer):
    # Fifteen nodes have no label; published figures count them as class 0.
    labels = citeseer.y.numpy().copy()
    assert (labels < 0).sum() == 15
    labels[labels < 0] = 0
    found = measured(citeseer, labels)
    np.testing.assert_allclose(
        found.ccns.diagonal(), [0.28, 0.54, 0.65, 0.62, 0.69, 0.69], atol=0.005
    )
    assert found.ccns[0, 1] == pytest.approx(0.26, abs=0.005)
    assert found.edge_homophily == pytest.approx(0.7355, abs=5e-5)
    assert found.node_homophily == pytest.approx(0.717, abs=5e-4)


def test_citeseer_without_the_nodes_that_have_no_label(citeseer):
    small = gcsr.condense(citeseer, nodes=30, method="random")
    found = gcsr.analyze(small, citeseer, **NO_MAP)
    assert found.original.balance.unlabeled == 15
    # Those nodes' class was a guess: without it class 0 and homophily are a little higher.
    assert found.original.ccns[0, 0] == pytest.approx(0.294, abs=5e-4)
    assert found.original.edge_homophily == pytest.approx(0.7377, abs=5e-5)
    assert 100 * found.paper_sparsity == pytest.approx(0.086, abs=5e-4)
    assert found.original.density == 9104 / 3327**2
    assert found.nearest.agreement == 1


def test_cora_as_published(shared_data):
    graph = gcsr.load("cora", root=shared_data)
    found = measured(graph, graph.y.numpy())
    assert found.edge_homophily == pytest.approx(0.8100, abs=5e-5)
    assert found.node_homophily == pytest.approx(0.825, abs=5e-4)
