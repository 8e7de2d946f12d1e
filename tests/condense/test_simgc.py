"""SimGC's terms against plain loops, in float64, and its step against autograd."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gcsr import Graph, InputError, SimGC
from gcsr.data.views import View
from gcsr.engines.result import Context
from gcsr.equations import alignment as terms
from gcsr.equations.alignment import alignment, class_moments, smoothness
from gcsr.methods.presets import paper_settings
from helpers import CPU, dense, plain_norm, planted_graph

SEEDS = [3, 4]
SMALL: dict[str, Any] = {
    "nodes": 10,
    "teacher_hidden_channels": 5,
    "teacher_epochs": 6,
    "generator_hidden_channels": 4,
    "dtype": "float64",
}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return planted_graph()


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def share_of(labels: torch.Tensor) -> torch.Tensor:
    hot = torch.nn.functional.one_hot(labels).double()
    return (hot / hot.sum(0)).T


def test_moments_are_those_of_torch():
    labels = torch.tensor([0, 0, 0, 1, 1, 2])
    rows = random(2, 6, 4)
    mean, deviation = class_moments(rows, share_of(labels))
    for c in range(2):
        torch.testing.assert_close(mean[:, c], rows[:, labels == c].mean(1))
        torch.testing.assert_close(deviation[:, c], rows[:, labels == c].std(1))
    assert not deviation[:, 2].any()


def test_equal_rows_have_a_finite_gradient():
    rows = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    class_moments(rows, share_of(torch.tensor([0, 0, 0])))[1].sum().backward()
    assert torch.isfinite(rows.grad).all()


def test_alignment_leaves_out_deviations_of_single_nodes():
    sizes = torch.tensor([3, 2, 1])
    ours, theirs = ((random(2, 3, 4, seed=s), random(2, 3, 4, seed=s + 1)) for s in (0, 2))
    expected = torch.zeros(2, dtype=torch.float64)
    for c, size in enumerate(sizes.tolist()):
        for which in range(2):
            if which == 0 or size > 1:
                gap = ours[which][:, c] - theirs[which][:, c]
                expected += size * gap.square().mean(-1) / 6
    torch.testing.assert_close(alignment(ours, theirs, sizes), expected)


def test_smoothness_by_loops_and_finite_differences(monkeypatch):
    x, a = random(1, 4, 3), random(1, 4, 4, seed=1).abs()
    total = 0.0
    for i in range(4):
        for j in range(4):
            total -= float(a[0, i, j] * (-0.5 * (x[0, i] - x[0, j]).square()).exp().mean())
    assert float(smoothness(x, a)) == pytest.approx(total / float(a.sum()))
    near = torch.stack([x, x * 0.1])
    # Edges between similar nodes lower it: the sign.
    assert smoothness(near[1], a) < smoothness(near[0], a)
    for at_once in (1, 2**24):
        monkeypatch.setattr(terms, "AT_ONCE", at_once)
        assert torch.autograd.gradcheck(
            smoothness, (x.clone().requires_grad_(), a.clone().requires_grad_())
        )


@pytest.mark.parametrize("units", ["absolute", "relative"])
def test_loss_is_the_sum_of_its_terms(graph, units):
    condenser = SimGC(units=units, threshold=0.5, **SMALL)
    view = View(graph).condensing()
    initial = condenser.initial_state(Context(view, 10, SEEDS, CPU))
    step = initial.step(slice(None))
    found, (gradient,) = step.loss_and_gradients(structural=False, train=False)
    norm, x_real = plain_norm(dense(graph.adjacency)), graph.x.double()
    real = torch.cat([x_real, norm @ x_real, norm @ norm @ x_real], 1)
    rows, labels = real[graph.train], graph.y[graph.train]
    unit = float(x_real[graph.train].square().mean().sqrt()) if units == "relative" else 1.0
    y = initial.labels
    for g in range(len(SEEDS)):
        x = step.x[g].clone().requires_grad_()
        params = tuple(p[g : g + 1] for p in step.structure.params)
        a = step.structure.generator.adjacency(x.unsqueeze(0), params)[0]
        a = torch.where(a >= 0.5, a, 0)
        small = plain_norm(a)
        z = torch.cat([x, small @ x, small @ small @ x], 1)
        w1, b1, w2, b2 = (p[g] for p in step.teacher)
        scores = ((small @ small @ x) @ w1 + b1).relu() @ w2 + b2
        loss = torch.nn.functional.cross_entropy(scores, y)
        weights = torch.bincount(y).double()
        for c in range(3):
            ours, theirs = z[y == c] / unit, rows[labels == c] / unit
            mean = (ours.mean(0) - theirs.mean(0)).square().mean()
            std = (ours.std(0) - theirs.std(0)).square().mean()
            loss = loss + 10 * weights[c] / weights.sum() * (mean + std)
        gaps = (x.unsqueeze(1) - x.unsqueeze(0)) / unit
        loss = loss - 0.1 * (a * (-0.5 * gaps.square()).exp().mean(-1)).sum() / a.sum()
        torch.testing.assert_close(found[g], loss.detach(), rtol=1e-5, atol=1e-6)
        loss.backward()
        torch.testing.assert_close(gradient[g], x.grad, rtol=1e-4, atol=1e-6)


def test_the_start_is_noise_of_the_size_of_features(graph):
    settings: dict[str, Any] = {**SMALL, "epochs": 0, "iterate": "last"}
    scaled = SimGC(**settings).condense(graph, device="cpu").x
    plain = SimGC(units="absolute", **settings).condense(graph, device="cpu").x
    unit = float(graph.x[graph.train].double().square().mean().sqrt())
    torch.testing.assert_close(scaled, unit * plain, rtol=1e-5, atol=1e-7)
    assert float(plain.std()) == pytest.approx(1, abs=0.2)


def test_validation_is_a_setting(graph):
    settings: dict[str, Any] = {**SMALL, "epochs": 4}
    small = SimGC(validate_every=2, **settings).condense(graph, device="cpu")
    assert small.provenance["validation"]["iterations"] == [0, 2, 4]
    last = SimGC(iterate="last", **settings).condense(graph, device="cpu")
    assert "validation" not in last.provenance
    with pytest.raises(InputError, match="validate_every must be"):
        SimGC(nodes=10, validate_every=0)


def test_published_settings():
    settings, _ = paper_settings("simgc", "cora", 70)
    condenser = SimGC(nodes=70, **settings)
    assert (condenser.epochs, condenser.feature_lr, condenser.alignment) == (1500, 0.005, 10.0)
    assert SimGC(nodes=90, **paper_settings("simgc", "reddit", 76)[0]).alignment == 100.0
