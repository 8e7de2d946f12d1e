"""Every statistic on graphs small enough to be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcsr import CondensedGraph
from gcsr.analysis.analysis import ordered_matrices
from gcsr.analysis.statistics import (
    ClassBalance,
    LabeledGraph,
    ccns,
    ccns_distance,
    edge_homophily,
    node_homophily,
    paper_sparsity,
    silhouette,
    silhouette_of_first,
    statistics_of,
    total_variation,
)
from helpers import planted_graph

ROOT = np.sqrt(2)


def graph_of(edges: dict[tuple[int, int], float], labels: list[int], classes: int = 2):
    a = np.zeros((len(labels), len(labels)), np.float32)
    for (i, j), weight in edges.items():
        a[i, j] = a[j, i] = weight
    return LabeledGraph.of_classes(sp.csr_array(a), np.array(labels), classes)


@pytest.fixture
def path() -> LabeledGraph:
    """1 - 0 - 2 - 3, classes 0 0 1 1."""
    return graph_of({(0, 1): 1, (0, 2): 1, (2, 3): 1}, [0, 0, 1, 1])


@pytest.fixture
def partly() -> LabeledGraph:
    """The path, a triangle of its ends with node 4, which has no label, and node 5 with no edge."""
    edges = {(0, 1): 1, (0, 2): 1, (2, 3): 1, (1, 4): 1, (3, 4): 1}
    return graph_of(edges, [0, 0, 1, 1, -1, 0])


def test_path(path):
    # Two of three edges stay in a class; the shares of own neighbors are 1/2, 1, 1/2, 1.
    assert edge_homophily(path) == pytest.approx(2 / 3)
    assert edge_homophily(path, weighted=True) == pytest.approx(2 / 3)
    assert node_homophily(path) == pytest.approx(3 / 4)
    assert statistics_of(path).density == 6 / 16
    # (2 + √2)/4 and (1 + √2)/4: worked out in tests/equations/test_ccns.py.
    own, cross = (2 + ROOT) / 4, (1 + ROOT) / 4
    np.testing.assert_allclose(ccns(path), [[own, cross], [cross, own]])


def test_unlabeled_nodes_are_no_neighbors_and_no_members(path, partly):
    # Edges to node 4 count nowhere; node 5 has no neighbor, so no node homophily, but is a member.
    assert edge_homophily(partly) == pytest.approx(edge_homophily(path))
    assert node_homophily(partly) == pytest.approx(node_homophily(path))
    assert statistics_of(partly).density == 10 / 36
    own, cross = (2 + ROOT) / 4, (1 + ROOT) / 4
    expected = [[own * 4 / 9, cross * 2 / 3], [cross * 2 / 3, own]]
    np.testing.assert_allclose(ccns(partly), expected)
    balance = statistics_of(partly).balance
    assert balance.nodes.tolist() == [3, 2] and balance.unlabeled == 1
    assert balance.shares.tolist() == [0.6, 0.4]


def test_weights():
    # Weights 3 within class 0 and 1 between the classes: 1 of 2 edges, but 3/4 of the weight.
    weighted = graph_of({(0, 1): 3, (0, 2): 1}, [0, 0, 1])
    assert edge_homophily(weighted) == pytest.approx(1 / 2)
    assert edge_homophily(weighted, weighted=True) == pytest.approx(3 / 4)
    # Nodes: 3/4, 1, 0.
    assert node_homophily(weighted) == pytest.approx(1.75 / 3)
    # Unit histograms: (3, 1)/√10, (1, 0) and (1, 0); class 0 has the first two.
    mean = (np.array([3, 1]) / np.sqrt(10) + [1, 0]) / 2
    np.testing.assert_allclose(ccns(weighted), [[mean @ mean, mean[0]], [mean[0], 1]])
    # Above 1 only the edge of weight 3 is left.
    above = statistics_of(weighted, threshold=1)
    assert above.density_above == 2 / 9
    assert above.degrees.counts.tolist() == [1, 2]
    assert above.weights.quartiles.tolist() == [3] * 5
    # Strengths 4, 3, 1.
    strengths = above.strengths
    assert strengths.mean == pytest.approx(8 / 3) and strengths.quartiles[2] == 3


def test_nothing_to_count():
    lonely = graph_of({}, [0, 1])
    assert edge_homophily(lonely) is None and node_homophily(lonely) is None
    assert statistics_of(lonely).density == 0
    assert statistics_of(lonely).weights.count == 0
    assert statistics_of(lonely).degrees.counts.tolist() == [2]
    assert np.isnan(ccns(lonely)).all()
    apart = ccns_distance(ccns(lonely), np.ones((2, 2)))
    assert (apart.frobenius, apart.off_diagonal_correlation, apart.classes) == (None, None, 0)


def test_the_diagonal_of_a_condensed_graph_is_dropped():
    # Nodes 0 and 1 of class 0, node 2 of class 1; only A'[0, 2] = .5 is off the diagonal.
    a = torch.tensor([[5.0, 0, 0.5], [0, 7, 0], [0.5, 0, 9]])
    small = CondensedGraph(torch.eye(3), a, torch.tensor([0, 0, 1]), 3)
    found = statistics_of(LabeledGraph.of_condensed(small), threshold=0.01)
    assert (found.entries, found.density) == (2, 2 / 9)
    assert found.edge_homophily == 0 and found.node_homophily == 0
    # Unit histograms: (0, 1), nothing, (1, 0). Class 0 has mean (0, 1/2): s = 1/4 and 0. Class 2 is
    # not there.
    absent = np.nan
    expected = [[0.25, 0, absent], [0, 1, absent], [absent, absent, absent]]
    np.testing.assert_allclose(found.ccns, expected)
    assert found.balance.shares.tolist() == [2 / 3, 1 / 3, 0]


def test_soft_and_missing_labels_of_a_condensed_graph():
    # Shares (1, 0) and (.5, .5) agree half the time.
    x, a = torch.eye(2), torch.tensor([[0.0, 2.0], [2.0, 0.0]])
    soft = LabeledGraph.of_condensed(
        CondensedGraph(x, a, torch.tensor([[1.0, 0.0], [0.5, 0.5]]), 2)
    )
    assert edge_homophily(soft) == pytest.approx(0.5)
    assert node_homophily(soft) == pytest.approx(0.5)
    assert ClassBalance.of(soft.shares).nodes.tolist() == [1.5, 0.5]
    bare = LabeledGraph.of_condensed(CondensedGraph(x, a, torch.tensor([1, -1]), 2))
    assert edge_homophily(bare) is None
    assert ClassBalance.of(bare.shares).unlabeled == 1


def test_sparsity_as_in_the_papers_table():
    # 2 · 5429 / N² under the name that the paper lists, else the undirected edges: nnz / N².
    graph = planted_graph(isolated=0)
    assert paper_sparsity(graph) == graph.num_edges / graph.num_nodes**2
    assert paper_sparsity(graph.renamed("cora")) == 2 * 5429 / graph.num_nodes**2


def test_ccns_distance():
    a = np.array([[1, 0.1, 0.2], [0.1, 1, 0.3], [0.2, 0.3, 1]])
    # Differences: .3 once on the diagonal and .2 twice beside it: √(.09 + 2·.04).
    b = a.copy()
    b[0, 0] -= 0.3
    b[1, 2] = b[2, 1] = 0.5
    found = ccns_distance(a, b)
    assert found.frobenius == pytest.approx(np.sqrt(0.17))
    # Pairs (.1, .2, .3) and (.1, .2, .5): centered (-.1, 0, .1) and (-1/6, -1/15, 7/30), so the
    # products sum to .04, the squares to .02 and 78/900.
    assert found.off_diagonal_correlation == pytest.approx(0.04 / np.sqrt(0.02 * 78 / 900))
    assert found.classes == 3
    b[0] = b[:, 0] = np.nan
    found = ccns_distance(a, b)
    assert (found.classes, found.off_diagonal_correlation) == (2, None)
    assert found.frobenius == pytest.approx(np.sqrt(0.08))
    assert ccns_distance(a, a).frobenius == 0
    assert ccns_distance(a, 1 - a).off_diagonal_correlation == pytest.approx(-1)
    assert ccns_distance(a, np.eye(3)).off_diagonal_correlation is None


def test_total_variation():
    assert total_variation(np.array([0.5, 0.5]), np.array([0.2, 0.8])) == pytest.approx(0.3)


@pytest.mark.parametrize("leaves", [3, 40, 100])
def test_every_node_is_in_one_bin_of_the_degrees(leaves):
    # A star: one node of degree n and n of degree 1.
    star = graph_of({(0, i): 1 for i in range(1, leaves + 1)}, [0] + [1] * leaves)
    found = statistics_of(star).degrees
    assert found.counts.sum() == found.count == leaves + 1
    ones = np.flatnonzero((found.edges[:-1] < 1) & (found.edges[1:] > 1))
    assert found.counts[ones].tolist() == [leaves]
    assert found.counts[-1] <= 1 and found.edges[-1] > leaves
    assert found.mean == pytest.approx(2 * leaves / (leaves + 1))


def test_equal_degrees_get_equal_bins():
    complete = graph_of({(i, j): 1 for i in range(50) for j in range(i)}, [0, 1] * 25)
    found = statistics_of(complete).degrees
    assert np.ptp(np.diff(found.edges)) == 0 and found.counts.max() == 50


def test_silhouette_by_hand():
    # On a line: class 0 at 0 and 2, class 1 at 10 alone. (10 - 2)/10, (8 - 2)/8 and 0.
    x, classes = np.array([[0.0], [2.0], [10.0]]), np.array([0, 0, 1])
    assert silhouette(x, classes) == pytest.approx((0.8 + 0.75 + 0) / 3)
    # A node without a label changes nothing.
    more = np.array([[0.0], [2.0], [10.0], [1.0]]), np.array([0, 0, 1, -1])
    assert silhouette(*more) == pytest.approx((0.8 + 0.75 + 0) / 3)
    assert silhouette(x, np.array([0, 1, 2])) == 0
    assert silhouette(x, np.array([0, 0, 0])) is None
    assert silhouette(x, np.array([0, 0, -1])) is None


def test_silhouette_of_the_first_classes():
    # Classes 1 and 4 are the first two that are there; class 7, in their midst, does not count.
    x = np.array([[0.0], [2.0], [10.0], [5.0], [1.0]])
    classes = np.array([1, 1, 4, 7, -1])
    assert silhouette_of_first(x, classes, 2) == pytest.approx((0.8 + 0.75 + 0) / 3)
    # With it: (5 - 2)/5, (3 - 2)/3 and two singletons.
    assert silhouette_of_first(x, classes) == pytest.approx((0.6 + 1 / 3) / 4)


def test_matrices_go_class_by_class():
    x = torch.tensor([[1.0, 0], [0, 2], [3, 0], [1, 1]])
    a = torch.arange(16.0).reshape(4, 4)
    small = CondensedGraph(x, a + a.T, torch.tensor([1, -1, 0, 1]), 2)
    found = ordered_matrices(small)
    assert found.order.tolist() == [2, 0, 3, 1]
    assert found.classes.tolist() == [0, 1, 1, -1]
    assert found.starts.tolist() == [0, 1, 3]
    # X'X'ᵀ by hand in the order (3, 0), (1, 0), (1, 1), (0, 2).
    gram = [[9, 3, 3, 0], [3, 1, 1, 0], [3, 1, 2, 2], [0, 0, 2, 4]]
    np.testing.assert_array_equal(found.gram, gram)
    assert found.adjacency[0, 3] == small.adjacency[2, 1]
