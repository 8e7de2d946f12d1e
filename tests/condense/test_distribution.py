"""Distribution matching and one-step gradient matching against plain formulas, in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gcsr import DM, GCDM, GCDMX, DosCond, GCond, Graph, InputError
from gcsr.data.views import View
from gcsr.engines.gradient.engine import LearnedStructure, MatchGradients
from gcsr.engines.result import Context
from gcsr.methods.gradient_matching import GradientCondenser
from gcsr.methods.presets import paper_settings
from helpers import CPU, dense, plain_norm, planted_graph

SEEDS = [3, 4]
SMALL: dict[str, Any] = {
    "nodes": 10,
    "hidden_channels": 6,
    "selection": "random",
    "dtype": "float64",
}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return planted_graph()


def begun(condenser: GradientCondenser, graph: Graph) -> MatchGradients:
    step = condenser.initial_state(Context(View(graph).condensing(), 10, SEEDS, CPU)).step(
        slice(None)
    )
    assert isinstance(step, MatchGradients)
    step.begin(0, structural=False)
    return step


def embedded(
    model: str, step: MatchGradients, g: int, x: torch.Tensor, norm: torch.Tensor
) -> torch.Tensor:
    """What the last layer multiplies."""
    theta = [p[g].double() for p in step.theta]
    if model == "sgc":
        return norm @ norm @ x
    if model == "sgc2":
        weight, bias = theta[0][:-1], theta[0][-1:]
        return norm @ norm @ (x @ weight + bias)
    weight, bias = theta[0], theta[1]
    if model == "gcn":
        return norm @ (norm @ x @ weight + bias).relu()
    return norm @ norm @ (x @ weight + bias).relu()


@pytest.mark.parametrize("model", ["sgc", "sgc2", "sgc-relu", "gcn"])
@pytest.mark.parametrize("method", [DM, GCDM])
def test_loss_is_the_distance_of_class_means(graph, method, model):
    step = begun(method(model=model, **SMALL), graph)
    found, (gradient,) = step.loss_and_gradients(structural=False, train=False)
    real = plain_norm(dense(graph.adjacency))
    labels = step.classes.targets.argmax(1)
    adjacency = step.adjacency()
    for g in range(len(SEEDS)):
        x = step.x[g].clone().requires_grad_()
        small = torch.eye(10, dtype=torch.float64)
        if adjacency is not None:
            small = plain_norm(step.structure.generator.adjacency(x[None], part(step, g))[0])
        theirs = embedded(model, step, g, graph.x.double(), real)
        ours = embedded(model, step, g, x, small)
        loss = torch.zeros((), dtype=torch.float64)
        for c in range(graph.num_classes):
            members = graph.train[graph.y[graph.train] == c]
            gap = theirs[members].mean(0) - ours[labels == c].mean(0)
            loss = loss + gap.square().mean()
        torch.testing.assert_close(found[g], loss.detach(), rtol=1e-10, atol=1e-12)
        loss.backward()
        torch.testing.assert_close(gradient[g], x.grad, rtol=1e-8, atol=1e-12)


def part(step: MatchGradients, g: int) -> tuple[torch.Tensor, ...]:
    return tuple(p[g : g + 1].detach() for p in step.structure.params)


def test_networks_train_by_cross_entropy(graph):
    """The network after the inner steps is the one that gradient matching trains."""
    ours = begun(GCDMX(model="gcn", **SMALL), graph)
    theirs = begun(
        GCond(**{k: v for k, v in SMALL.items() if k != "selection"}, model="gcn"), graph
    )
    theirs.structure, theirs.inner = LearnedStructure(), ours.inner
    for step in (ours, theirs):
        step.loss_and_gradients(structural=False, train=True)
    for a, b in zip(ours.theta, theirs.theta, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("model", ["gcn", "sgc-relu"])
def test_generous_samples_are_everything(graph, model):
    samples = {"neighbors": "sampled", "fan_out": 99, "second_fan_out": 99}
    losses = [
        begun(DM(model=model, **SMALL, **more), graph).loss_and_gradients(
            structural=False, train=False
        )[0]
        for more in ({"neighbors": "all"}, samples)
    ]
    torch.testing.assert_close(*losses, rtol=1e-9, atol=1e-12)


def test_the_generator_learns_in_ten_of_thirty_epochs(graph):
    step = begun(GCDM(**SMALL), graph)
    structural = [epoch for epoch in range(45) if step.structure.trains_in(epoch)]
    assert structural == [*range(10), *range(30, 40)]


def test_distribution_matching_has_one_distance():
    with pytest.raises(InputError, match="distance must be one of squared, got 'cosine'"):
        DM(nodes=10, distance="cosine")


# -- DosCond -----------------------------------------------------------------------------------------


def test_doscond_is_gcond_with_one_match_and_no_training(graph):
    counts = {"outer": 1, "inner": 0, "model": "gcn", "distance": "relative"}
    settings: dict[str, Any] = {"nodes": 10, "epochs": 15, "hidden_channels": 8}
    ours = DosCond(**settings).condense(graph, device="cpu")
    theirs = GCond(**settings, **counts).condense(graph, device="cpu")
    for name in ("x", "adjacency", "y"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name))


def test_relative_distance_is_per_class(graph):
    """Over all weights of a class, in units of the real gradient's square."""
    settings = {"nodes": 10, "hidden_channels": 6, "dtype": "float64"}
    step = begun(DosCond(**settings), graph)
    found, _ = step.loss_and_gradients(structural=False, train=False)
    real, adjacency = plain_norm(dense(graph.adjacency)), step.adjacency()
    labels = step.classes.targets.argmax(1)
    for g in range(len(SEEDS)):
        weights = [p[g].clone().requires_grad_() for p in step.theta]

        def gradients(x, norm, nodes, c, weights=weights):
            w1, b1, w2, b2 = weights
            scores = norm @ (norm @ x @ w1 + b1).relu() @ w2 + b2
            loss = -scores[nodes].log_softmax(-1)[:, c].mean()
            return torch.cat([g.flatten() for g in torch.autograd.grad(loss, (w1, w2))])

        total = 0.0
        for c, importance in enumerate(step.classes.importance.tolist()):
            members = graph.train[graph.y[graph.train] == c]
            theirs = gradients(graph.x.double(), real, members, c)
            own = (labels == c).nonzero().flatten()
            ours = gradients(step.x[g], plain_norm(adjacency[g]), own, c)
            total += importance * float((ours - theirs).square().sum() / theirs.square().sum())
        assert float(found[g]) == pytest.approx(total, rel=1e-9)


def test_published_settings():
    settings, cell = paper_settings("doscond", "cora", 70)
    condenser = DosCond(nodes=70, **settings)
    assert (condenser.epochs, condenser.outer, condenser.inner) == (5000, 1, 0)
    assert cell == "paper (cora, 70 nodes)"
    assert GCDM(nodes=90, **paper_settings("gcdm", "ogbn-arxiv", 90)[0]).structure_lr == 1e-2
    with pytest.raises(InputError, match=r"dataset must be one of .*, got 'reddit'"):
        paper_settings("doscond", "reddit", 153)
