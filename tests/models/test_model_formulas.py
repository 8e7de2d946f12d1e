from __future__ import annotations

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.models.base import Params, init_batch
from gcsr.models.registry import CONDENSING_MODELS, MODELS, condensing_model
from gcsr.models.registry import testing_model as model_named
from gcsr.models.sparse import SparseTopology
from gcsr.models.topology import DenseTopology, EmptyTopology
from gcsr.utils.errors import InputError
from helpers import CPU, one_network, plain_logits, random_adjacency

N, D, H, C = 14, 9, 16, 4
PLAIN = [name for name in MODELS if name != "gat"]  # attention is checked against PyG


def networks(name: str, count: int = 3, dtype: torch.dtype = torch.float64) -> Params:
    generators = [torch.Generator().manual_seed(s) for s in range(count)]
    return tuple(p.to(dtype) for p in init_batch(model_named(name, H), D, C, generators))


@pytest.fixture
def x() -> Tensor:
    return torch.randn(N, D, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


@pytest.fixture
def a() -> Tensor:
    return random_adjacency(N, isolated=2)


def sparse(a: Tensor) -> SparseTopology:
    return SparseTopology(sp.csr_array(a.numpy()), CPU, a.dtype)


@pytest.mark.parametrize("name", PLAIN)
def test_equals_its_formula(name, x, a):
    model, params = model_named(name, H), networks(name)
    found = model.logits(params, model.prepare(x, DenseTopology(a)))
    assert found.shape == (3, N, C)
    for i in range(3):
        expected = plain_logits(name, one_network(params, i), x, a)
        torch.testing.assert_close(found[i], expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", PLAIN)
def test_equals_its_formula_with_a_diagonal(name, x, a):
    a = a + torch.diag(torch.rand(N, dtype=torch.float64))
    model, params = model_named(name, H), networks(name, 1)
    found = model.logits(params, model.prepare(x, DenseTopology(a)))[0]
    expected = plain_logits(name, one_network(params), x, a)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_sparse_graph_gives_what_the_dense_one_gives(name, x, a):
    model, params = model_named(name, H), networks(name)
    dense = model.logits(params, model.prepare(x, DenseTopology(a)))
    found = model.logits(params, model.prepare(x, sparse(a)))
    torch.testing.assert_close(found, dense, rtol=1e-10, atol=1e-11)
    assert torch.isfinite(found).all()  # two nodes are isolated


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", [DenseTopology, sparse])
def test_asked_for_some_nodes_gives_their_rows(name, kind, x, a):
    model, params = model_named(name, H), networks(name)
    nodes = torch.tensor([11, 0, 3, 8])
    whole = model.logits(params, model.prepare(x, kind(a)))
    some = model.logits(params, model.prepare(x, kind(a), nodes))
    torch.testing.assert_close(some, whole[:, nodes], rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", [DenseTopology, sparse])
def test_batch_gives_what_each_network_gives_alone(name, kind, x, a):
    model, params = model_named(name, H), networks(name, 4)
    prepared = model.prepare(x, kind(a))
    together = model.logits(params, prepared)
    for i in range(4):
        alone = model.logits(tuple(p[i : i + 1] for p in params), prepared)[0]
        torch.testing.assert_close(together[i], alone, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", PLAIN)
def test_batch_of_graphs_gives_what_each_graph_gives_alone(name, x):
    model, params = model_named(name, H), networks(name, 3)
    xs = torch.stack([x, 2 * x, x.flip(0)])
    graphs = torch.stack([random_adjacency(N, seed=s) for s in range(3)])
    together = model.logits(params, model.prepare(xs, DenseTopology(graphs)))
    for i in range(3):
        expected = plain_logits(name, one_network(params, i), xs[i], graphs[i])
        torch.testing.assert_close(together[i], expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("name", MODELS)
def test_empty_topology_is_the_identity_matrix(name, x):
    model, params = model_named(name, H), networks(name)
    eye = torch.eye(N, dtype=torch.float64)
    expected = model.logits(params, model.prepare(x, DenseTopology(eye)))
    found = model.logits(params, model.prepare(x, EmptyTopology(N, CPU)))
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("nodes", [None, torch.tensor([7, 1, 0])])
def test_gradient_through_sparse_operators_is_the_dense_one(name, nodes, x, a):
    model = model_named(name, H)
    gradients = []
    for topology in (DenseTopology(a), sparse(a)):
        params = tuple(p.requires_grad_() for p in networks(name))
        features = x.clone().requires_grad_()
        scores = model.logits(params, model.prepare(features, topology, nodes))
        weights = torch.linspace(-1, 1, scores.numel(), dtype=torch.float64).view_as(scores)
        gradients.append(torch.autograd.grad((scores * weights).sum(), (features, *params)))
    for dense, found in zip(*gradients, strict=True):
        torch.testing.assert_close(found, dense, rtol=1e-9, atol=1e-11)


def test_paper_sage_is_gcn_with_the_same_weights(x, a):
    params = networks("gcn")
    scores = [
        model.logits(params, model.prepare(x, DenseTopology(a)))
        for model in (model_named("gcn", H), model_named("sage-paper", H))
    ]
    assert torch.equal(*scores)


def test_mlp_does_not_see_the_graph(x, a):
    model, params = model_named("mlp", H), networks("mlp")
    with_edges = model.logits(params, model.prepare(x, DenseTopology(a)))
    assert torch.equal(with_edges, model.logits(params, model.prepare(x, EmptyTopology(N, CPU))))


def test_sgc_is_linear_while_condensing_and_not_while_testing():
    assert condensing_model("sgc") == model_named("sgc-linear")
    assert model_named("sgc").relu
    assert "gat" not in CONDENSING_MODELS


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"model must be one of mlp, sgc"):
        model_named("resnet")
    with pytest.raises(InputError, match="got 'gat'"):
        condensing_model("gat")
