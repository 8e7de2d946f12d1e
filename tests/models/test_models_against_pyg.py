"""Our layers against those of torch_geometric with the same weights."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.nn import ChebConv, GATConv, GCNConv, SAGEConv

from gcsr.models.base import Model, Params
from gcsr.models.registry import testing_model as model_named
from gcsr.models.sparse import SparseTopology
from gcsr.models.topology import DenseTopology
from helpers import CPU, random_adjacency

N, D, H, C = 15, 7, 16, 3


@pytest.fixture
def x() -> Tensor:
    return torch.randn(N, D, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


@pytest.fixture
def a() -> Tensor:
    return (random_adjacency(N, isolated=1) > 0).double()


def made(name: str) -> tuple[Model, Params]:
    model = model_named(name, H)
    params = model.init(D, C, torch.Generator().manual_seed(0))
    return model, tuple(p.double() for p in params)


def edges(a: Tensor) -> tuple[Tensor, Tensor]:
    index = a.nonzero().T.contiguous()
    return index, a[index[0], index[1]]


def set_to(parameter: Tensor, value: Tensor) -> None:
    assert parameter.shape == value.shape
    with torch.no_grad():
        parameter.copy_(value)


def both(model: Model, params: Params, x: Tensor, a: Tensor) -> list[Tensor]:
    csr = sp.csr_array(np.asarray(a))
    topologies = (DenseTopology(a), SparseTopology(csr, CPU, torch.float64))
    return [model.logits(params, model.prepare(x, topology))[0] for topology in topologies]


@pytest.mark.parametrize("weighted", [False, True])
def test_gcn(x, a, weighted):
    a = random_adjacency(N, isolated=1) if weighted else a
    model, (w1, b1, w2, b2) = made("gcn")
    layers = [GCNConv(D, H).double(), GCNConv(H, C).double()]
    for layer, w, b in zip(layers, (w1, w2), (b1, b2), strict=True):
        set_to(layer.lin.weight, w[0].T)
        set_to(layer.bias, b[0, 0])
    expected = layers[1](layers[0](x, *edges(a)).relu(), *edges(a))
    for found in both(model, (w1, b1, w2, b2), x, a):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)


def test_textbook_sage(x, a):
    model, (w1, b1, w2, b2) = made("sage")
    layers = [SAGEConv(D, H).double(), SAGEConv(H, C).double()]
    own = (w1[0, :D], w2[0, :, :C])
    neighbors = (w1[0, D:], w2[0, :, C:])
    for layer, w, v, b in zip(layers, own, neighbors, (b1, b2), strict=True):
        set_to(layer.lin_r.weight, w.T)
        set_to(layer.lin_l.weight, v.T)
        set_to(layer.lin_l.bias, b[0, 0])
    index, _ = edges(a)
    expected = layers[1](layers[0](x, index).relu(), index)
    for found in both(model, (w1, b1, w2, b2), x, a):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_textbook_cheby(x, a, weighted):
    a = random_adjacency(N, isolated=1) if weighted else a
    model, (w1, b1, w2, b2) = made("cheby")
    layers = [ChebConv(D, H, K=2).double(), ChebConv(H, C, K=2).double()]
    terms = ((w1[0, :D], w1[0, D:]), (w2[0, :, :C], w2[0, :, C:]))
    for layer, (w, v), b in zip(layers, terms, (b1, b2), strict=True):
        set_to(layer.lins[0].weight, w.T)
        set_to(layer.lins[1].weight, v.T)
        set_to(layer.bias, b[0, 0])
    expected = layers[1](layers[0](x, *edges(a)).relu(), *edges(a))
    for found in both(model, (w1, b1, w2, b2), x, a):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)


def test_gat(x, a):
    model, params = made("gat")
    w1, b1, a1, w2, b2, a2 = params
    heads = model.heads
    first = GATConv(D, H // heads, heads=heads).double()
    second = GATConv(H, C).double()
    for layer, w, b, attention, k in ((first, w1, b1, a1, heads), (second, w2, b2, a2, 1)):
        set_to(layer.lin.weight, w[0].T)
        set_to(layer.bias, b[0, 0])
        set_to(layer.att_src, attention[0, :, :k].T.unsqueeze(0))
        set_to(layer.att_dst, attention[0, :, k:].T.unsqueeze(0))
    index, _ = edges(a)
    expected = second(first(x, index).relu(), index)
    for found in both(model, params, x, a):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)


def test_gat_takes_edge_weights_as_multiplicities(x, a):
    """An edge of weight 2 counts like two edges; PyG is given the second one explicitly."""
    model, params = made("gat")
    w1, b1, a1, _, _, _ = params
    heads = model.heads
    layer = GATConv(D, H // heads, heads=heads).double()
    set_to(layer.lin.weight, w1[0].T)
    set_to(layer.bias, b1[0, 0])
    set_to(layer.att_src, a1[0, :, :heads].T.unsqueeze(0))
    set_to(layer.att_dst, a1[0, :, heads:].T.unsqueeze(0))
    index, _ = edges(a)
    doubled = layer(x, torch.cat([index, index], 1))
    from gcsr.models.gat import _attend

    ours = _attend((x @ w1[0]).unsqueeze(0), a1, heads, DenseTopology(2 * a).edges())[0] + b1[0]
    torch.testing.assert_close(ours, doubled, rtol=1e-9, atol=1e-10)
