"""What gradient matching is made of: generators, distances, Adam."""

from __future__ import annotations

import pytest
import torch
from benchmarks.speed.reference_gradient import PlainGenerator, plain_distance
from torch import nn

from gcsr.engines.gradient.engine import label_roughness
from gcsr.engines.gradient.structures import EdgeGenerator, GraphonGenerator
from gcsr.equations.gradient_distance import cosine_distance, squared_distance, unit_products
from gcsr.training.adam import Adam
from helpers import random_adjacency


def test_generator_is_the_one_on_concatenated_pairs():
    x = torch.randn(2, 7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    generator = EdgeGenerator(hidden_channels=9)
    params = tuple(p.double() for p in generator.init(5, [0, 1]))
    # Scales and shifts that are not the initial ones and zeros.
    params = tuple(p + 0.1 * torch.sin(torch.arange(p.numel()).double()).view_as(p) for p in params)
    adjacency = generator.adjacency(x, params)
    for g in range(2):
        plain = PlainGenerator.with_weights(tuple(p[g] for p in params))
        # Biases in front of a normalization must not matter.
        with torch.no_grad():
            plain.layers[0].bias.add_(1.0)
            plain.layers[1].bias.sub_(2.0)
            torch.testing.assert_close(adjacency[g], plain(x[g]), rtol=1e-10, atol=1e-12)


def test_graphon_by_hand():
    """One graph, pair by pair."""
    n, h = 5, 4
    x = torch.randn(1, n, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    generator = GraphonGenerator(hidden_channels=h)
    params = tuple(p.double() for p in generator.init(3, [2]))
    c, u = ([p[0] for p in part] for part in (params[:9], params[9:]))
    t = torch.linspace(-1, 1, n, dtype=torch.float64)

    def normed(z, scale, shift):
        centered = z - z.mean(0)
        return (
            centered / (centered.square().mean(0) + 1e-5).sqrt() * scale.flatten() + shift.flatten()
        ).relu()

    features = torch.stack([x[0, i] @ c[0] + x[0, j] @ c[1] for i in range(n) for j in range(n)])
    grid = torch.stack([t[i] * u[0][0] + t[j] * u[1][0] for i in range(n) for j in range(n)])
    hidden_c = normed(features, c[2], c[3])
    hidden_u = normed(grid, u[2], u[3]) * hidden_c
    hidden_c2 = normed(hidden_c @ c[4].T, c[5], c[6])
    hidden_u2 = normed(hidden_u @ u[4].T, u[5], u[6]) * hidden_c2
    scores = 0.5 * (hidden_u2 @ u[7].T + u[8]) + 0.5 * (hidden_c2 @ c[7].T + c[8])
    q = scores.view(n, n)
    expected = ((q + q.T) / 2).sigmoid() * (1 - torch.eye(n, dtype=torch.float64))
    torch.testing.assert_close(generator.adjacency(x, params)[0], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("distance", ["cosine", "squared"])
def test_distance_by_loops(distance):
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(6, 4, dtype=torch.float64, generator=generator) for _ in range(2))
    a[:, 2] = 0
    if distance == "cosine":
        ours = cosine_distance(unit_products(a, b), unit_products(a, a), unit_products(b, b))
    else:
        ours = squared_distance(unit_products(a - b, a - b))
    bias = torch.randn(4, dtype=torch.float64, generator=generator)
    expected = plain_distance([a, bias], [b, -bias], distance)
    torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-12)


def test_cosine_distance_has_a_slope_where_a_unit_is_never_active():
    a = torch.zeros(3, 2, requires_grad=True)
    b = torch.ones(3, 2)
    cosine_distance(unit_products(a, b), unit_products(a, a), unit_products(b, b)).backward()
    assert torch.isfinite(a.grad).all()


def test_label_roughness():
    adjacency = random_adjacency(6, density=0.9)
    targets = torch.nn.functional.one_hot(torch.tensor([0, 0, 1, 1, 2, 2]), 3).double()
    root = torch.diag((adjacency.sum(1) + 1e-8) ** -0.5)
    laplacian = root @ (torch.diag(adjacency.sum(1)) - adjacency) @ root
    expected = torch.trace(targets.T @ laplacian @ targets)
    torch.testing.assert_close(label_roughness(adjacency[None], targets)[0], expected)


@pytest.mark.parametrize("per_graph", [False, True])
def test_adam_is_torchs(per_graph):
    generator = torch.Generator().manual_seed(0)
    p = torch.randn(2, 3, 4, dtype=torch.float64, generator=generator)
    other = nn.Parameter(p.clone())
    if per_graph:
        _adam_with_a_rate_per_graph(p, generator)
        return
    ours, theirs = Adam((p,), 0.01), torch.optim.Adam([other], lr=0.01)
    for _ in range(5):
        g = torch.randn(p.shape, dtype=p.dtype, generator=generator)
        ours.step((g,))
        other.grad = g.clone()
        theirs.step()
    torch.testing.assert_close(p, other.detach(), rtol=1e-10, atol=1e-12)


def _adam_with_a_rate_per_graph(p, generator):
    rates = (0.01, 0.3)
    ours = Adam((p,), torch.tensor(rates, dtype=p.dtype).view(2, 1, 1))
    others = [nn.Parameter(one.clone()) for one in p]
    theirs = [torch.optim.Adam([o], lr=rate) for o, rate in zip(others, rates, strict=True)]
    for _ in range(5):
        g = torch.randn(p.shape, dtype=p.dtype, generator=generator)
        ours.step((g,))
        for one, adam, part in zip(others, theirs, g, strict=True):
            one.grad = part.clone()
            adam.step()
    torch.testing.assert_close(p, torch.stack([o.detach() for o in others]), rtol=1e-10, atol=1e-12)


def test_adam_leaves_alone_what_is_not_allowed():
    p = torch.ones(2, 3, 1, dtype=torch.float64)
    free = Adam((torch.ones(1, 3, 1, dtype=torch.float64),), 0.01)
    ours = Adam((p,), 0.01)
    g = torch.arange(1.0, 4.0).double().view(1, 3, 1)
    bad = torch.full_like(g, torch.nan)
    for good in (True, False, True):
        both = torch.cat([g, bad])
        ours.step(
            (both if good else torch.cat([bad, bad]),), torch.tensor([float(good), 0.0]).double()
        )
        if good:
            free.step((g,))
    assert torch.equal(p[1], torch.ones(3, 1, dtype=torch.float64))
    torch.testing.assert_close(p[0], free.params[0][0], rtol=1e-12, atol=1e-12)
