from __future__ import annotations

import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcsr.data.views import View
from gcsr.equations.propagation import normalized_adjacency, propagate
from gcsr.models.sparse import SparseTopology
from gcsr.starts.sample import propagated_features
from gcsr.utils.products import csr_tensor
from helpers import CPU, dense, plain_norm, planted_graph, random_adjacency


@given(n=st.integers(1, 15), seed=st.integers(0, 1000), loops=st.booleans())
@settings(deadline=None, max_examples=40)
def test_dense_and_sparse_equal_eq_2(n, seed, loops):
    a = random_adjacency(n, isolated=min(1, n - 1), seed=seed)
    if loops:
        a += torch.diag(torch.rand(n, dtype=torch.float64))
    torch.testing.assert_close(normalized_adjacency(a), plain_norm(a), rtol=1e-12, atol=1e-14)
    sparse = SparseTopology(sp.csr_array(a.numpy()), CPU, torch.float64).normalized.matrix
    torch.testing.assert_close(dense(sparse), plain_norm(a), rtol=1e-12, atol=1e-14)


def test_self_connection_is_added_beside_a_diagonal():
    a = torch.tensor([[2.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    root = torch.tensor(8.0, dtype=torch.float64).sqrt()
    expected = torch.tensor([[3 / 4, 1 / root], [1 / root, 1 / 2]], dtype=torch.float64)
    torch.testing.assert_close(normalized_adjacency(a), expected)


def test_no_edges_and_identity_normalize_to_identity():
    eye = torch.eye(3, dtype=torch.float64)
    torch.testing.assert_close(normalized_adjacency(0 * eye), eye)
    torch.testing.assert_close(normalized_adjacency(eye), eye)


def test_batches_are_normalized_one_by_one():
    batch = torch.stack([random_adjacency(6, seed=s) for s in range(3)])
    expected = torch.stack([plain_norm(a) for a in batch])
    torch.testing.assert_close(normalized_adjacency(batch), expected)


@pytest.mark.parametrize("hops", [0, 1, 3])
def test_hops_are_powers_of_the_operator(hops):
    a, x = random_adjacency(7), torch.randn(7, 3, dtype=torch.float64)
    expected = torch.linalg.matrix_power(plain_norm(a), hops) @ x
    torch.testing.assert_close(propagate(normalized_adjacency(a), x, hops), expected)
    sparse = SparseTopology(sp.csr_array(a.numpy()), CPU, torch.float64).normalized.matrix
    torch.testing.assert_close(propagate(csr_tensor(sparse, CPU, torch.float64), x, hops), expected)


@pytest.mark.parametrize("hops", [0, 1, 4])
def test_real_graph_is_propagated_the_same_way(hops):
    graph = planted_graph(weighted=True)
    found = propagated_features(View(graph).condensing().visible, hops, CPU)
    operator = torch.linalg.matrix_power(plain_norm(dense(graph.adjacency)), hops)
    torch.testing.assert_close(found.double(), operator @ graph.x.double(), rtol=1e-5, atol=1e-6)


def test_sparse_topology_is_eq_2_in_float64():
    graph = planted_graph(weighted=True)
    operator = SparseTopology(graph.adjacency, CPU, torch.float64).normalized
    found = operator(torch.eye(graph.num_nodes, dtype=torch.float64))
    expected = plain_norm(dense(graph.adjacency))
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-9)
