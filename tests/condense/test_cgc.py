"""CGC and CGC-X against their formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score
from sklearn.preprocessing import PolynomialFeatures

from gcsr import CGC, CGCX, InputError
from gcsr.methods.cgc import class_f1, draw, least_squares
from gcsr.starts import clusters
from gcsr.starts.clusters import spectral_rows
from helpers import dense, plain_norm, planted_graph


def test_centers_are_weighted_by_confidence():
    graph = planted_graph(features=4, noise=5.0)
    small = CGCX(nodes=3, augment=0.0, temperature=0.05).condense(graph, device="cpu")
    hop, x = plain_norm(dense(graph.adjacency)).numpy(), graph.x.double().numpy()
    train, y = graph.train.numpy(), graph.y[graph.train].numpy()
    hops = [x[train], (hop @ x)[train], (hop @ hop @ x)[train]]
    weights = np.linalg.lstsq(sum(hops) / 3, np.eye(3)[y], rcond=None)[0]
    shares = torch.from_numpy(hops[2] @ weights).softmax(1).numpy()
    q = shares[np.arange(len(y)), y]
    wrong = shares.argmax(1) != y
    assert 0 < wrong.sum() < len(y)
    q = np.where(wrong, q.min(), q)
    for label in range(3):
        part = np.exp(q[y == label] / 0.05)
        center = (part[:, None] * hops[2][y == label]).sum(0) / part.sum()
        np.testing.assert_allclose(small.x[label], center, rtol=1e-4, atol=1e-5)


def test_features_of_cgc_minimize_its_objective():
    graph = planted_graph(noise=1.0)
    centers = CGCX(nodes=10).condense(graph, device="cpu").x.double()
    alpha = 3.0
    small = CGC(nodes=10, alpha=alpha, threshold=0.95).condense(graph, device="cpu")
    a = small.adjacency.double()
    cosine = torch.nn.functional.cosine_similarity(centers[:, None], centers[None], dim=2)
    assert torch.equal(a, ((cosine > 0.95) & ~torch.eye(10, dtype=torch.bool)).double())
    degree = a.sum(1)
    assert (degree == 0).any() and (degree > 0).any()
    root = torch.where(degree > 0, degree.clamp_min(1).rsqrt(), 0.0)
    laplacian = root[:, None] * (torch.diag(degree) - a) * root
    p = torch.linalg.matrix_power(plain_norm(a), 3)
    x = small.x.double().requires_grad_()
    objective = alpha * (p @ x - centers).square().sum() + torch.trace(x.T @ laplacian @ x)
    (gradient,) = torch.autograd.grad(objective, x)
    assert gradient.abs().max() < 1e-4 * centers.abs().max()
    # In the released code alpha is a scale of X'.
    one, two = (
        CGC(nodes=10, alpha=alpha, threshold=0.95, solver="faithful")
        .condense(graph, device="cpu")
        .x
        for alpha in (1.0, 2.0)
    )
    torch.testing.assert_close(2 * one, two)
    assert not torch.allclose(one, small.x)


def test_no_edge_joins_two_classes_by_default():
    graph = planted_graph(noise=1.0)
    # A common offset, as of dense features without negative values: all centers are similar.
    shifted = replace(graph, x=graph.x + 5.0)
    other = torch.arange(3).repeat_interleave(4)
    other = other[:, None] != other
    for one, joined in ((graph, False), (shifted, True)):
        fixed = CGC(nodes=12, threshold=0.8).condense(one, device="cpu").adjacency
        assert bool(fixed[other].any()) == joined
        small = CGC(nodes=12).condense(one, device="cpu").adjacency
        assert small.any()
        assert not small[other].any()
        # Where no edge of the usual threshold joins two classes, it stays.
        assert joined or torch.equal(small, fixed)


def test_spectral_rows_are_those_of_explicit_features():
    x = torch.randn(9, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    k, c = 3, 2**-0.5
    u = np.linalg.svd(x - x.mean(0))[0][:, :k]
    features = PolynomialFeatures(include_bias=True)
    z = features.fit_transform(u)
    ones = (features.powers_ == 1).sum(1)
    z = z * np.select([ones == 2, ones == 1], [2**0.5, (2 * c) ** 0.5], 1.0)
    z[:, 0] = c
    scaled = z / np.sqrt(z @ z.sum(0))[:, None]
    wanted = np.linalg.svd(scaled)[0][:, 1 : k + 1]
    found = spectral_rows(x, k).numpy()
    np.testing.assert_allclose(found @ found.T, wanted @ wanted.T, atol=1e-10)


def test_spectral_grouping_of_a_large_class_is_refused(monkeypatch):
    monkeypatch.setattr(clusters, "MOST_SPECTRAL", 5)
    with pytest.raises(InputError, match="grouping must be 'k-means' for a class of more than 5"):
        CGCX(nodes=6, grouping="spectral").condense(planted_graph(), device="cpu")


@pytest.mark.parametrize("shape", [(6, 11), (11, 6)])
def test_least_squares_has_the_least_norm(shape):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=shape), rng.normal(size=(shape[0], 3))
    x[:, 1] = x[:, 0]
    wanted = np.linalg.lstsq(x, y, rcond=None)[0]
    found = least_squares(torch.from_numpy(x), torch.from_numpy(y))
    np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_classes_that_are_missed_are_drawn():
    labels, predicted = torch.tensor([0, 0, 1, 1, 2]), torch.tensor([0, 0, 1, 2, 2])
    found = class_f1(predicted, labels, 4)
    wanted = f1_score(labels, predicted, labels=range(4), average=None, zero_division=0)
    np.testing.assert_allclose(found, wanted)
    generator = torch.Generator().manual_seed(0)
    assert set(draw((1 - found)[labels], 200, generator).tolist()) == {2, 3, 4}
    assert set(draw(torch.zeros(3).double(), 200, generator).tolist()) == {0, 1, 2}
