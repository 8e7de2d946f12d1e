"""Kernel ridge condensation: its kernel and its gradient against plain forms."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from gcsr import KRR
from gcsr.data.views import View
from gcsr.equations.gntk import KernelNodes, ridge_prediction, tangent_kernel
from gcsr.starts.sample import propagated_features
from helpers import CPU, planted_graph, random_adjacency

MOST = 0.9999


def averaging(nodes: int, seed: int) -> Tensor:
    looped = random_adjacency(nodes, seed=seed) + torch.eye(nodes, dtype=torch.float64)
    return looped / looped.sum(1, keepdim=True)


def rows(nodes: int, seed: int) -> Tensor:
    return torch.randn(nodes, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def kronecker_kernel(x1: Tensor, s1: Tensor, x2: Tensor, s2: Tensor, blocks: int, layers: int):
    """GC-SNTK with explicit Kronecker products; the derivative is that of the old correlation."""

    def aggregated(kernel: Tensor, left: Tensor, right: Tensor) -> Tensor:
        return (torch.kron(left, right) @ kernel.flatten()).view(kernel.shape)

    def arc(rho: Tensor) -> tuple[Tensor, Tensor]:
        return (math.pi - rho.arccos()) / math.pi, (1 - rho**2).sqrt() / math.pi

    sigma = theta = x1 @ x2.T
    own = [x1 @ x1.T, x2 @ x2.T]
    for _ in range(blocks):
        sigma, theta = aggregated(sigma, s1, s2), aggregated(theta, s1, s2)
        own = [aggregated(own[0], s1, s1), aggregated(own[1], s2, s2)]
        sizes = [one.diagonal().sqrt() for one in own]
        for _ in range(layers):
            scale = torch.outer(*sizes)
            rho = (sigma / scale).clamp(-MOST, MOST)
            derivative, rest = arc(rho)
            sigma = scale * (rho * derivative + rest)
            theta = theta * derivative + sigma
            for i, size in enumerate(sizes):
                rho = (own[i] / torch.outer(size, size)).clamp(-MOST, MOST)
                derivative, rest = arc(rho)
                own[i] = torch.outer(size, size) * (rho * derivative + rest)
    return theta


@pytest.mark.parametrize(("blocks", "layers"), [(1, 1), (2, 2), (3, 1)])
def test_two_sided_products_are_the_kronecker_product(blocks, layers):
    x1, x2, s1, s2 = rows(5, 0), rows(4, 1), averaging(5, 0), averaging(4, 1)
    wanted = kronecker_kernel(x1, s1, x2, s2, blocks, layers)
    found = tangent_kernel(KernelNodes(x1, s1), KernelNodes(x2, s2), blocks, layers)
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-12)
    # Without edges every node is its only neighbor.
    eye = torch.eye(5, dtype=torch.float64)
    wanted = kronecker_kernel(x1, eye, x2, s2, blocks, layers)
    found = tangent_kernel(KernelNodes(x1), KernelNodes(x2, s2), blocks, layers)
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("edges", [False, True])
def test_the_gradient_is_that_of_finite_differences(edges):
    real, labels = rows(6, 2), torch.eye(3, dtype=torch.float64)[torch.tensor([0, 1, 2, 0, 1, 2])]
    mean = averaging(4, 3) if edges else None

    def loss(x: Tensor, y: Tensor) -> Tensor:
        small = KernelNodes(x, mean)
        cross, own = (tangent_kernel(one, small, 2, 2) for one in (KernelNodes(real), small))
        return (ridge_prediction(cross, own, y, 0.5).softmax(-1) - labels).square().mean()

    x = rows(4, 4).requires_grad_()
    y = rows(4, 5)[:, :3].clone().requires_grad_()
    assert torch.autograd.gradcheck(loss, (x, y), eps=1e-6, atol=1e-7)


def test_the_kernel_learns_and_its_accuracy_is_told():
    graph = planted_graph(noise=2.0)
    settings = {"nodes": 6, "iterations": 40, "feature_lr": 0.05, "iterate": "last"}
    losses = KRR(**settings).condense(graph, device="cpu").provenance["matching_loss"]["values"]
    assert losses[-1] < 0.8 * losses[0]
    # Of the last iterate, which is returned as it is, the prediction can be repeated.
    method = KRR(**settings, soft_labels=False, label_lr=0.0)
    small = method.condense(graph, device="cpu")
    view = View(graph).condensing()
    real = propagated_features(view.visible, 2, CPU)[view.validation.nodes].double()
    predicted = method.predicted(real, small.x.double(), small.targets.double()).argmax(1)
    right = (predicted == view.validation.labels).double().mean()
    assert small.provenance["kernel"]["validation"] == pytest.approx(float(right))
    assert right > 0.6


def test_edges_join_the_nearest_nodes():
    small = KRR(nodes=8, iterations=3, neighbors=2, iterate="last").condense(
        planted_graph(), device="cpu"
    )
    apart = torch.cdist(small.x, small.x)
    a = small.adjacency
    assert int(a.sum()) == 2 * 8 and torch.equal(a, a.T) and not a.diagonal().any()
    above = torch.ones(8, 8).triu(1).bool()
    assert apart[above & (a > 0)].max() <= apart[above & (a == 0)].min()


def test_batches_differ_between_steps_and_seeds():
    method = KRR(nodes=6, batch=4)
    first, second = (method.drawn(21, i, [0, 1]) for i in (0, 1))
    assert first.shape == (2, 4)
    assert not torch.equal(first, second) and not torch.equal(first[0], first[1])
    graph = planted_graph()
    small = KRR(nodes=6, batch=4, iterations=2, iterate="last").condense(graph, device="cpu")
    assert small.num_nodes == 6


def test_a_start_that_is_far_larger_than_the_features_is_told():
    graph = planted_graph()
    small = replace(graph, x=graph.x / 1000)
    method = KRR(nodes=6, init="uniform", iterate="last", iterations=1)
    told = [method.condense(one, device="cpu").provenance["notes"] for one in (graph, small)]
    assert [any("standardized" in note for note in notes) for notes in told] == [False, True]
    sampled = KRR(nodes=6, iterate="last", iterations=1).condense(small, device="cpu")
    assert not any("standardized" in note for note in sampled.provenance["notes"])
