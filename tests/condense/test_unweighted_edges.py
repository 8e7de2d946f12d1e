"""Which entries of A' become edges of networks without edge weights."""

from __future__ import annotations

import pytest
import torch

import gcsr
from gcsr import CondensedGraph, View
from gcsr.engines.iterates import QuickScore, choose_edges
from helpers import planted_graph, with_other_test_labels

TINY = {"nodes": 9, "method": "gcsr", "iterations": 2, "experts": 1, "expert_epochs": 4}
TINY |= {"max_start": 2, "device": "cpu"}


@pytest.fixture(scope="module")
def graph():
    return planted_graph(noise=1.5, per_class=60, train_per_class=20, val_per_class=20)


@pytest.fixture(scope="module")
def small(graph) -> CondensedGraph:
    return gcsr.condense(graph, **TINY)


def test_choice_is_in_the_provenance_and_test_labels_have_no_say(graph, small, tmp_path):
    chosen = small.provenance["unweighted_edges"]
    assert chosen["tried"][0]["edges"] == 0
    other = gcsr.condense(with_other_test_labels(graph), **TINY)
    assert other.provenance["unweighted_edges"] == chosen
    assert CondensedGraph.load(small.save(tmp_path / "a.safetensors")).edge_threshold == (
        small.edge_threshold
    )


@pytest.mark.parametrize("useful", [True, False])
def test_edges_are_kept_where_they_validate_better(graph, useful):
    """Noisy training nodes: edges within classes average the noise out; random ones destroy it."""
    nodes = graph.train
    y = graph.y[nodes]
    generator = torch.Generator().manual_seed(0)
    x = graph.x[nodes] + 3 * torch.randn(graph.x[nodes].shape, generator=generator)
    groups = y if useful else y[torch.randperm(len(y), generator=generator)]
    a = torch.where(groups[:, None] == groups, 0.9, 1e-4)
    quick = QuickScore(View(graph).condensing().validation, torch.device("cpu"))
    targets = torch.nn.functional.one_hot(y, 3).float()
    found = choose_edges(x, a, targets, quick, seed=0)
    assert (found["threshold"] is not None) == useful
    if useful:
        assert 1e-5 < found["threshold"] < 0.9
    scores = [one["validation"] for one in found["tried"]]
    assert scores[-1] < max(scores)


def test_unweighted_graphs_have_nothing_to_choose(graph):
    for method in ("random", "clusters"):
        made = gcsr.condense(graph, nodes=9, method=method, device="cpu")
        assert "unweighted_edges" not in made.provenance
        assert made.edge_threshold == 0
