"""SGDD's structure term: its algebra, its gradients, and that it stays finite."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gcsr import Graph, InputError
from gcsr.engines.gradient.engine import clipped_gradients
from gcsr.engines.gradient.structures import TransportTerm
from gcsr.equations.transport import (
    released_signal_transport,
    root_trace,
    shifted_laplacian,
    signal_transport,
    transport_plan,
)
from gcsr.methods.gcond import SGDD
from gcsr.methods.presets import SIZES, paper_settings
from gcsr.methods.registry import build
from gcsr.training.adam import Adam
from helpers import plain_norm, planted_graph, random_adjacency

QUICK: dict[str, Any] = {"nodes": 9, "outer": 2, "inner": 1, "iterate": "last", "samples": 20}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return planted_graph()


def positive(n: int, seed: int = 0) -> torch.Tensor:
    a = torch.randn(n, n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return a @ a.T + 0.1 * torch.eye(n, dtype=torch.float64)


def test_root_trace():
    m = torch.stack([positive(5, 0), positive(5, 1)])
    expected = torch.linalg.eigvalsh(m).sqrt().sum(-1)
    torch.testing.assert_close(root_trace(m), expected, rtol=1e-12, atol=1e-12)


def test_gradient_of_the_root_trace_by_finite_differences():
    assert torch.autograd.gradcheck(
        lambda m: root_trace((m + m.mT) / 2), positive(4).requires_grad_(), eps=1e-6, atol=1e-7
    )


def test_equal_eigenvalues_have_a_gradient():
    """Where differentiating an eigendecomposition divides by zero."""
    m = (4 * torch.eye(3, dtype=torch.float64)).requires_grad_()
    root_trace(m).backward()
    torch.testing.assert_close(m.grad, 0.25 * torch.eye(3, dtype=torch.float64))


def test_what_is_not_finite_says_so_and_spares_the_others():
    m = torch.stack([positive(3), torch.full((3, 3), torch.nan, dtype=torch.float64)])
    value = root_trace(m)
    assert torch.isfinite(value[0]) and torch.isnan(value[1])


def test_signal_transport_by_hand():
    adjacency, real = random_adjacency(5, density=0.8), random_adjacency(8, seed=1, isolated=1)
    eye = torch.eye(5, dtype=torch.float64)
    l_small = 1.01 * eye - plain_norm(adjacency)
    torch.testing.assert_close(shifted_laplacian(adjacency), l_small)
    inverse = torch.linalg.inv(shifted_laplacian(real))
    generator = torch.Generator().manual_seed(0)
    plan = transport_plan(torch.rand(8, 5, dtype=torch.float64, generator=generator), 5)
    values, vectors = torch.linalg.eigh(l_small)
    root = vectors @ torch.diag(values**-0.5) @ vectors.T
    mixed = root @ plan.T @ inverse @ plan @ root
    traces = torch.linalg.eigvalsh(mixed + 1e-6 * eye).sqrt().sum()
    expected = (5 * torch.trace(torch.linalg.inv(l_small)) - 2 * traces).abs()
    torch.testing.assert_close(
        signal_transport(adjacency, plan, inverse), expected, rtol=1e-6, atol=0
    )


def test_gradient_of_signal_transport_by_finite_differences():
    inverse = torch.linalg.inv(shifted_laplacian(random_adjacency(6, seed=1)))
    upper = random_adjacency(4, density=0.9).requires_grad_()
    generator = torch.Generator().manual_seed(0)
    strength = torch.rand(6, 4, dtype=torch.float64, generator=generator).requires_grad_()

    def distance(a: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        return signal_transport((a + a.mT) / 2, transport_plan(s, 5), inverse)

    assert torch.autograd.gradcheck(distance, (upper, strength), eps=1e-5, rtol=1e-4, atol=1e-4)


def test_released_form_by_hand():
    """On an adjacency whose singular values are far from zero nothing is dropped."""
    adjacency = random_adjacency(5, density=1.0)
    assert float(torch.linalg.svdvals(adjacency)[-1]) > 0.009
    plan = torch.rand(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    inverse = torch.linalg.pinv(plain_norm(random_adjacency(7, seed=2)))
    left, singular, right = torch.linalg.svd(adjacency)
    root = right.T @ torch.diag(singular**-0.5) @ left.T
    values = torch.linalg.eigvalsh(root @ plan.T @ inverse @ plan @ root)
    expected = (
        5 * torch.trace(torch.linalg.inv(adjacency)) - 2 * values.clamp_min(2e-20).sqrt().sum()
    )
    torch.testing.assert_close(
        released_signal_transport(adjacency, plan, inverse), expected.abs(), rtol=1e-9, atol=1e-9
    )


def test_plan_has_equal_margins():
    generator = torch.Generator().manual_seed(0)
    plan = transport_plan(3 * torch.randn(12, 4, dtype=torch.float64, generator=generator), 200)
    torch.testing.assert_close(plan.sum(1), torch.ones(12, dtype=torch.float64))
    torch.testing.assert_close(
        plan.sum(0), torch.full((4,), 3.0, dtype=torch.float64), atol=1e-6, rtol=0
    )


def test_guard_clips_and_refuses():
    loss = torch.tensor([1.0, 1.0, torch.inf])
    gradients = (torch.tensor([[[30.0]], [[torch.nan]], [[1.0]]]), torch.full((3, 1, 1), 40.0))
    clipped, allowed = clipped_gradients(loss, gradients)
    assert allowed.tolist() == [1, 0, 0]
    assert [float(g[0]) for g in clipped] == pytest.approx([0.6, 0.8])


def test_steps_that_are_not_finite_are_skipped_and_told(graph, monkeypatch):
    whole = TransportTerm.value
    calls = []

    def sometimes(self: TransportTerm, adjacency: torch.Tensor, params: Any) -> torch.Tensor:
        calls.append(1)
        value = whole(self, adjacency, params)
        return value * torch.nan if len(calls) == 3 else value

    monkeypatch.setattr(TransportTerm, "value", sometimes)
    small = SGDD(epochs=12, **QUICK).condense(graph, device="cpu")
    assert torch.isfinite(small.x).all() and torch.isfinite(small.adjacency).all()
    assert any("1 of 24 steps were skipped" in note for note in small.provenance["notes"])


def test_released_form_stops_with_a_sentence(graph, monkeypatch):
    def broken(self: TransportTerm, adjacency: torch.Tensor, params: Any) -> torch.Tensor:
        return (adjacency.sum((1, 2)) + params[0].sum((1, 2))) * torch.nan

    monkeypatch.setattr(TransportTerm, "value", broken)
    with pytest.raises(InputError, match="structure_loss: 'released' stopped being finite"):
        SGDD(structure_loss="released", epochs=12, **QUICK).condense(graph, device="cpu")


@pytest.mark.parametrize("structure_loss", ["stabilized", "released", "off"])
def test_each_form_is_its_own(graph, structure_loss):
    settings = QUICK | {"epochs": 3, "structure_weight": 1e-2, "structure_lr": 0.05}
    small = SGDD(structure_loss=structure_loss, **settings).condense(graph, device="cpu")
    off = SGDD(structure_loss="off", **settings).condense(graph, device="cpu")
    assert torch.isfinite(small.adjacency).all()
    assert torch.equal(small.adjacency, off.adjacency) == (structure_loss == "off")


def test_stabilized_term_stays_finite(graph):
    """Many generator phases with a heavy weight, large rates and a sample of the whole graph."""
    settings = QUICK | {"samples": 66, "structure_weight": 1.0, "structure_lr": 0.05}
    small = SGDD(epochs=260, feature_lr=0.05, **settings).condense(graph, device="cpu")
    assert torch.isfinite(small.x).all() and torch.isfinite(small.adjacency).all()
    assert all(v == v for v in small.provenance["matching_loss"]["values"])
    assert small.provenance["notes"] == []


def test_samples_change_with_the_period(graph):
    x = torch.zeros(2, 9, 12)
    term = TransportTerm(
        graph.adjacency, x, [0, 1], form="stabilized", weight=1.0, samples=10, rounds=5
    )
    optimiser = Adam(term.params, 0.1)
    term.begin(0, optimiser)
    first = term.params[0].clone()
    optimiser.step((torch.ones_like(first),))
    optimiser.step((torch.ones_like(first),))
    moved = term.params[0].clone()
    term.begin(1, optimiser)
    assert torch.equal(term.params[0], moved)
    term.begin(50, optimiser)
    assert not torch.equal(term.params[0], moved)
    # As fresh as at the beginning: moments and the count that corrects them.
    before = term.params[0].clone()
    optimiser.step((torch.ones_like(first),))
    torch.testing.assert_close(before - term.params[0], torch.full_like(before, 0.1))
    assert not torch.equal(first[0], first[1])


@pytest.mark.parametrize("method", ["dcg", "gcond-x", "gcond", "sgdd", "dm", "gcdm"])
@pytest.mark.parametrize("dataset", SIZES)
def test_presets_are_accepted(method, dataset):
    for nodes in SIZES[dataset]:
        settings, cell = paper_settings(method, dataset, nodes)
        condenser = build(method, {"nodes": nodes, **settings})
        # What the scripts return, where there are scripts.
        iterate = "last" if method in ("gcond", "sgdd") else "best-val"
        assert (condenser.units, condenser.iterate, condenser.nodes) == ("absolute", iterate, nodes)
        assert str(nodes) in cell
    assert paper_settings(method, dataset, nodes, model="gcn")[0]["model"] == "gcn"


def test_preset_of_gcond_on_cora():
    settings, _ = paper_settings("gcond", "cora", 70)
    wanted = {
        "model": "sgc",
        "feature_lr": 1e-4,
        "structure_lr": 1e-4,
        "outer": 20,
        "inner": 15,
    }
    assert settings.items() >= (wanted | {"epochs": 600, "threshold": 0.05}).items()
