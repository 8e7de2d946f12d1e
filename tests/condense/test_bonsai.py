"""Bonsai: what is real stays real, and every step against a plain form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcsr import Bonsai, InputError
from gcsr.methods import bonsai
from gcsr.methods.bonsai import coverage_order, ego_edges, ego_nodes, nearest_neighbors, pagerank
from helpers import planted_graph


def silent(*_: object) -> None: ...


@pytest.mark.parametrize("inductive", [False, True])
def test_every_row_edge_and_label_is_real(inductive):
    graph = planted_graph(weighted=True, inductive=inductive)
    small = Bonsai(nodes=12, overselect=2.0).condense(graph, device="cpu")
    nodes = torch.tensor(small.provenance["real_nodes"])
    # Of an inductive graph they are counted among its training nodes.
    nodes = graph.train[nodes] if inductive else nodes
    assert nodes.unique().numel() == 12
    assert torch.equal(small.x, graph.x[nodes])
    among = graph.adjacency[nodes.numpy()][:, nodes.numpy()]
    assert torch.equal(small.adjacency, torch.from_numpy(among.toarray()))
    trained = torch.isin(nodes, graph.train)
    assert torch.equal(small.y, torch.where(trained, graph.y[nodes], -1))
    counts = torch.bincount(small.y[small.labeled], minlength=3)
    assert counts.max() - counts.min() <= 1
    told = f"{int((~trained).sum())} of 12 nodes have no label"
    assert any(told in note for note in small.provenance["notes"]) is not inductive


def test_sparse_features_give_the_same_graph():
    graph = planted_graph()
    graph = replace(graph, x=graph.x * (graph.x > 1))
    ours, theirs = (
        Bonsai(nodes=12).condense(one, device="cpu")
        for one in (graph, replace(graph, x=graph.x.to_sparse_csr()))
    )
    assert torch.equal(ours.x, theirs.x) and torch.equal(ours.adjacency, theirs.adjacency)


def test_bytes_bound_what_is_stored():
    graph = planted_graph()
    whole = Bonsai(nodes=40).condense(graph, device="cpu")
    assert whole.num_nodes == 40
    limit = whole.stored_bytes // 2
    small = Bonsai(nodes=40, bytes=limit).condense(graph, device="cpu")
    assert 3 <= small.num_nodes < 40
    more = Bonsai(nodes=small.num_nodes + 1).condense(graph, device="cpu")
    assert small.stored_bytes <= limit < more.stored_bytes
    assert set(small.y[small.labeled].tolist()) == {0, 1, 2}
    with pytest.raises(InputError, match=r"bytes must be >= \d+, which 3 nodes take, got 10"):
        Bonsai(nodes=40, bytes=10).condense(graph, device="cpu")


def test_neighbors_are_exact_in_any_block(monkeypatch):
    rows = torch.randn(30, 4, generator=torch.Generator().manual_seed(0)) + 100
    apart = torch.cdist(rows.double(), rows.double()).fill_diagonal_(torch.inf)
    wanted = apart.argsort(1)[:, :5].numpy()
    for block in (2**24, 70):
        monkeypatch.setattr(bonsai, "BLOCK", block)
        np.testing.assert_array_equal(nearest_neighbors(rows, 5, silent), wanted)
    assert nearest_neighbors(rows[:3], 5, silent).shape == (3, 2)


def test_lazy_evaluation_gives_the_greedy_order():
    rng = np.random.default_rng(0)
    nearest = (np.arange(40)[:, None] + [rng.permutation(39)[:3] + 1 for _ in range(40)]) % 40
    covers = [{row} | set(np.flatnonzero((nearest == row).any(1))) for row in range(40)]
    left, wanted = set(range(40)), []
    for _ in range(40):
        free = [row for row in range(40) if row not in wanted]
        wanted.append(max(free, key=lambda row: (len(covers[row] & left), -row)))
        left -= covers[wanted[-1]]
    np.testing.assert_array_equal(coverage_order(nearest), wanted)


def test_pagerank_is_the_stationary_distribution():
    graph = planted_graph(isolated=2)
    seeds = np.zeros(graph.num_nodes, bool)
    seeds[[0, 5, 30]] = True
    a = graph.adjacency.toarray().astype(float)
    start = seeds / 3
    step = np.where(a.sum(0) > 0, a / np.maximum(a.sum(0), 1), start[:, None])
    wanted = np.linalg.solve(np.eye(len(a)) - 0.85 * step, 0.15 * start)
    np.testing.assert_allclose(pagerank(graph.adjacency, seeds), wanted, atol=1e-3)


def test_few_neighbors_are_filled_up():
    path = sp.csr_array(np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1))
    apart = sp.csr_array(sp.block_diag([path, np.zeros((3, 3))]))
    taken, chosen = ego_nodes(apart, np.array([0]), 7, 1.0)
    np.testing.assert_array_equal(taken, range(7))
    np.testing.assert_array_equal(chosen, [0])


def test_pagerank_walks_on_the_neighborhoods_of_chosen_nodes():
    # 0 and 1 are chosen; 2 and 3 are neighbors of 0 and joined; 4 is a neighbor of 1, and of 3.
    a = np.zeros((5, 5))
    for one, other in ((0, 2), (0, 3), (2, 3), (1, 4), (3, 4)):
        a[one, other] = a[other, one] = 2.0
    wanted = a.copy()
    wanted[3, 4] = wanted[4, 3] = 0
    wanted[0, 0] = wanted[1, 1] = 1
    chosen = np.array([True, True, False, False, False])
    np.testing.assert_array_equal(ego_edges(sp.csr_array(a), chosen).toarray(), wanted)


def test_context_does_not_take_the_place_of_chosen_nodes():
    # Chosen leaves of one unlabeled hub: without loops the hub has the highest rank.
    star = np.zeros((5, 5))
    star[0, 1:] = star[1:, 0] = 1
    leaves = np.arange(5) > 0
    rank = pagerank(ego_edges(sp.csr_array(star), leaves), leaves)
    assert pagerank(sp.csr_array(star), leaves).argmax() == 0
    assert rank[1:].sum() > 1.5 * rank[0]
