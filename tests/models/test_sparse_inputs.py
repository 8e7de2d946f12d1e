"""Features that are mostly zero take a sparse path on a CPU; the numbers stay the same."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcsr import models
from gcsr.models import base, gcn
from gcsr.models.base import init_batch
from gcsr.models.sparse import SparseOperator, SparseTopology

NODES, FEATURES, CLASSES = 600, 80, 4


@pytest.fixture(scope="module")
def graph() -> tuple[torch.Tensor, SparseTopology]:
    random = np.random.default_rng(0)
    edges = random.random((NODES, NODES)) < 0.01
    adjacency = sp.csr_array((edges | edges.T).astype(np.float64))
    adjacency.setdiag(0)
    adjacency.eliminate_zeros()
    filled = random.random((NODES, FEATURES)) < 0.03
    x = torch.from_numpy(filled * random.random((NODES, FEATURES)))
    return x, SparseTopology(adjacency, torch.device("cpu"), torch.float64)


@pytest.mark.parametrize("name", ["gcn", "sage-paper", "mlp", "appnp", "sgc"])
@pytest.mark.parametrize("limited", [False, True])
def test_sparse_inputs_give_the_dense_scores_and_gradients(graph, name, limited, monkeypatch):
    x, topology = graph
    nodes = torch.arange(5, NODES, 7) if limited else None
    model = models.testing_model(name, 16)
    generators = [torch.Generator().manual_seed(i) for i in range(3)]
    start = init_batch(model, FEATURES, CLASSES, generators)

    def outcome() -> tuple[bool, torch.Tensor, list[torch.Tensor]]:
        params = tuple(p.double().requires_grad_() for p in start)
        prepared = model.prepare(x, topology, nodes)
        scores = model.logits(params, prepared)
        gradients = torch.autograd.grad(scores.square().sum(), params)
        return isinstance(prepared.inputs, SparseOperator), scores, list(gradients)

    sparse, scores, gradients = outcome()
    assert sparse
    monkeypatch.setattr(base, "prefers_sparse", lambda x: False)
    monkeypatch.setattr(gcn, "prefers_sparse", lambda x: False)
    dense, expected, expected_gradients = outcome()
    assert not dense
    torch.testing.assert_close(scores, expected, rtol=1e-10, atol=1e-12)
    for ours, theirs in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_dense_small_or_differentiable_features_stay_dense() -> None:
    sparse = torch.zeros(NODES, FEATURES)
    assert base.prefers_sparse(sparse)
    assert not base.prefers_sparse(sparse.clone().requires_grad_())
    assert not base.prefers_sparse(torch.ones(NODES, FEATURES))
    assert not base.prefers_sparse(sparse[:100])
