"""The distribution term against its formula, and what it does to a condensed graph."""

from __future__ import annotations

import torch

from gcsr import View, condense
from gcsr.condense import build, paper_settings
from gcsr.condense.initialise import propagated_features
from gcsr.condense.trajectory import class_means as module
from gcsr.condense.trajectory.class_means import ClassMeans, class_means
from helpers import planted_graph

CPU = torch.device("cpu")


def term(weight, real, targets, x):
    """The formula, one graph and one class after the other."""
    total = torch.zeros((), dtype=x.dtype)
    unit = sum(float(row @ row) for row in real) / len(real)
    for g in range(x.shape[0]):
        for c, mean in enumerate(real):
            mass = float(targets[g, :, c].sum())
            if mass == 0:
                continue
            weighted = sum(targets[g, i, c] * x[g, i] for i in range(x.shape[1])) / mass
            total = total + (weighted - mean).square().sum()
    return weight * total / len(real) / unit


def test_classes_without_training_nodes_pull_nothing():
    """Soft labels give every condensed node a little of every class."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 4, 3, generator=generator, dtype=torch.float64)
    shares = torch.tensor([[0.99, 0.0, 0.01], [0.99, 0.0, 0.01], [0, 0.99, 0.01], [0, 0.99, 0.01]])
    means = torch.stack([x[0, :2].mean(0), x[0, 2:].mean(0), torch.full((3,), torch.nan)])
    found = ClassMeans.of(1.0, means, shares[None].double()).gradient(x)
    torch.testing.assert_close(found, torch.zeros_like(x))


def test_gradient_is_that_of_the_formula():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 7, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    real = torch.randn(3, 5, generator=generator, dtype=torch.float64)
    soft = torch.rand(2, 7, 3, generator=generator, dtype=torch.float64)
    hard = torch.nn.functional.one_hot(torch.tensor([0, 0, 1, 1, 1, 0, 1]), 3).double()
    for targets in (soft, hard.expand(2, -1, -1)):
        (expected,) = torch.autograd.grad(term(0.7, real, targets, x), x)
        found = ClassMeans.of(0.7, real, targets).gradient(x.detach())
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_means_are_those_of_training_rows_whatever_is_read_at_once(monkeypatch):
    visible = View(planted_graph()).condensing().visible
    rows = propagated_features(visible, 2, CPU)
    found = class_means(rows, visible)
    for label in range(visible.num_classes):
        own = rows[visible.train[visible.train_labels == label]].double()
        torch.testing.assert_close(found[label], own.mean(0))
    monkeypatch.setattr(module, "AT_ONCE", 2)
    torch.testing.assert_close(class_means(rows, visible), found)


def test_it_holds_condensed_classes_to_real_ones():
    graph = planted_graph()
    visible = View(graph).condensing().visible
    real = class_means(propagated_features(visible, 2, CPU), visible)
    settings = {
        "nodes": 6,
        "iterations": 60,
        "feature_rate": 0.02,
        "experts": 2,
        "expert_epochs": 20,
        "max_start": 10,
        "iterate": "last",
    }

    def away(weight):
        small = condense(graph, method="gcsr", class_means=weight, device="cpu", **settings)
        own = torch.stack([small.x[small.y == c].mean(0) for c in range(graph.num_classes)])
        return float((own - real).norm())

    assert away(100.0) < 0.5 * away(0.0)


def test_the_paper_has_neither_a_growing_window_nor_a_distribution_term():
    for method in ("gcsr", "mtt", "sfgc"):
        settings, _ = paper_settings(method, "cora", 70)
        paper = build(method, {**settings, "nodes": 70})
        assert (paper.class_means, paper.window) == (0, "fixed")
