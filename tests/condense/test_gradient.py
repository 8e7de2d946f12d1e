"""The gradient engine against the published loop written plainly, in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.speed.reference_gradient import PlainGenerator, PlainReal, PlainStep
from torch import nn

from gcsr import Graph, InputError
from gcsr.data.views import View
from gcsr.engines.gradient.blocks import chain, sampled_rows
from gcsr.engines.gradient.engine import MatchGradients
from gcsr.engines.loop import optimize
from gcsr.engines.result import Context
from gcsr.methods.gcond import DCG, SGDD, GCond, GCondX
from gcsr.methods.gradient_matching import GradientCondenser, released_order
from gcsr.methods.registry import build
from gcsr.models.sparse import SparseTopology
from gcsr.utils.devices import make_generator
from helpers import CPU, dense, plain_norm, planted_graph

MODELS = ("sgc", "sgc2", "sgc-relu", "gcn")
METHODS: dict[str, type[GradientCondenser]] = {"dcg": DCG, "gcond-x": GCondX, "gcond": GCond}
SEEDS = [3, 4]
SMALL: dict[str, Any] = {
    "nodes": 10,
    "hidden_channels": 6,
    "outer": 3,
    "inner": 2,
    "dtype": "float64",
}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return planted_graph()


def engine_step(
    condenser: GradientCondenser, graph: Graph, seeds: list[int] = SEEDS
) -> MatchGradients:
    ctx = Context(View(graph).condensing(), 10, seeds, CPU)
    step = condenser.initial_state(ctx).step(slice(None))
    assert isinstance(step, MatchGradients)
    return step


def plain_step(
    condenser: GradientCondenser, graph: Graph, step: MatchGradients, g: int
) -> PlainStep:
    """The same graph's state for the plain loop."""
    adjacency = dense(graph.adjacency)
    eye = torch.eye(graph.num_nodes, dtype=torch.float64)
    train = graph.y[graph.train]
    members = {c: graph.train[train == c] for c in range(graph.num_classes)}
    real = PlainReal(
        graph.x.double(), plain_norm(adjacency) if condenser.real_edges else eye, members
    )
    generator = None
    if step.structure.params:
        generator = PlainGenerator.with_weights(tuple(p[g] for p in step.structure.params))
    network = step.learner.init(
        graph.num_features, graph.num_classes, make_generator(SEEDS[g], "theta of epoch 0")
    )
    theta = [nn.Parameter(p[0].double()) for p in network]
    theta = [nn.Parameter(p.detach().flatten()) if p.shape[0] == 1 else p for p in theta]
    return PlainStep(
        nn.Parameter(step.x[g].clone()),
        step.classes.targets.argmax(1),
        generator,
        real,
        theta,
        condenser.model,
        condenser.inner,
        condenser.distance,
        feature_lr=float(step.feature_lr[g]),
        structure_lr=getattr(condenser, "structure_lr", 0.0),
    )


def begin(step: MatchGradients, structural: bool) -> None:
    step.begin(0, structural)


@pytest.mark.parametrize("distance", ["cosine", "squared"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", METHODS)
def test_engine_is_the_published_loop(graph, method, model, distance):
    """Losses of three outer steps, and X' after them, are those of the plain loop."""
    condenser = METHODS[method](model=model, distance=distance, **SMALL)
    step = engine_step(condenser, graph)
    plain = [plain_step(condenser, graph, step, g) for g in range(len(SEEDS))]
    begin(step, structural=False)
    for outer in range(3):
        before = step.loss.clone()
        step.match(structural=False, train=outer > 0)
        for g, other in enumerate(plain):
            loss = other(structural=False, train=outer < 2)
            torch.testing.assert_close((step.loss - before)[g], loss, rtol=1e-10, atol=1e-10)
    for g, other in enumerate(plain):
        torch.testing.assert_close(step.x[g], other.x.detach(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("model", MODELS)
def test_gradients_are_those_of_autograd(graph, model):
    condenser = GCond(model=model, **SMALL)
    step = engine_step(condenser, graph)
    begin(step, structural=False)
    _, (of_x,) = step.loss_and_gradients(structural=False, train=False)
    _, of_generator = step.loss_and_gradients(structural=True, train=False)
    for g in range(len(SEEDS)):
        plain = plain_step(condenser, graph, step, g)
        plain.match().backward()
        assert (of_x[g] - plain.x.grad).norm() < 1e-10 * plain.x.grad.norm()
        first = torch.cat([of_generator[0][g], of_generator[1][g]]).T
        weights = dict(plain.generator.named_parameters())
        pairs = {
            "layers.0.weight": first,
            "norms.0.weight": of_generator[2][g].flatten(),
            "norms.0.bias": of_generator[3][g].flatten(),
            "layers.1.weight": of_generator[4][g],
            "norms.1.weight": of_generator[5][g].flatten(),
            "norms.1.bias": of_generator[6][g].flatten(),
            "layers.2.weight": of_generator[7][g],
            "layers.2.bias": of_generator[8][g].flatten(),
        }
        for name, ours in pairs.items():
            theirs = weights[name].grad
            assert (ours - theirs).norm() < 1e-9 * theirs.norm(), name


def test_structural_steps_move_the_generator_alone(graph):
    condenser = GCond(**SMALL)
    step = engine_step(condenser, graph)
    plain = plain_step(condenser, graph, step, 0)
    begin(step, structural=True)
    x = step.x.clone()
    step.match(structural=True, train=False)
    assert torch.equal(step.x, x)
    plain(structural=True, train=False)
    adjacency = step.adjacency()
    torch.testing.assert_close(adjacency[0], plain.generator(x[0]).detach(), rtol=1e-6, atol=1e-8)
    before = adjacency.clone()
    begin(step, structural=False)
    step.match(structural=False, train=False)
    assert not torch.equal(step.x, x)
    assert not torch.equal(step.adjacency(), before)


def test_phase_rule(graph):
    learned = engine_step(GCond(**SMALL), graph).structure
    structural = [epoch for epoch in range(120) if learned.trains_in(epoch)]
    assert structural == [*range(10), *range(50, 60), *range(100, 110)]


def test_only_its_phase_moves_each_part(graph):
    condenser = GCond(**(SMALL | {"inner": 1, "outer": 1}))
    step = engine_step(condenser, graph)
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    optimize(
        step,
        12,
        progress=lambda *_: None,
        check_every=1,
        compare=lambda i: seen.append((step.x.clone(), step.structure.params[0].clone())),
        compare_at=range(12),
    )
    for epoch in range(12):
        (x, weights), (later_x, later_weights) = seen[epoch], seen[epoch + 1]
        assert torch.equal(x, later_x) == (epoch < 10)
        assert torch.equal(weights, later_weights) == (epoch >= 10)


def test_every_epoch_has_a_network_of_its_own(graph):
    step = engine_step(GCond(**SMALL), graph)
    first, again, later = (step.fresh_networks(e)[0] for e in (0, 0, 1))
    assert torch.equal(first, again) and not torch.equal(first, later)
    assert not torch.equal(first[0], first[1])


def test_the_network_of_an_epoch_is_trained_as_if_it_were_the_first(graph):
    """The moments of an earlier network have no say: two steps of the same X' have the same loss."""
    used, fresh = (engine_step(GCond(**SMALL), graph) for _ in range(2))
    begin(used, structural=False)
    for train in (False, True, True):
        used.match(structural=False, train=train)
    fresh.x.copy_(used.x)
    for step in (used, fresh):
        begin(step, structural=False)
        step.match(structural=False, train=True)
    assert torch.equal(used.loss, fresh.loss)


# -- the real side ---------------------------------------------------------------------------------


def test_sampled_rows_are_rows(graph):
    operator = SparseTopology(graph.adjacency, CPU, torch.float64).normalized.matrix
    nodes = np.arange(graph.num_nodes)
    whole = operator.toarray()
    counts = np.zeros_like(whole)
    for seed in range(300):
        taken = sampled_rows(operator, nodes, 3, np.random.default_rng(seed))
        assert (np.diff(taken.indptr) == np.minimum((whole > 0).sum(1), 3)).all()
        got = taken.toarray()
        # Weights as they were, and nothing twice.
        assert (np.isclose(got, whole) | (got == 0)).all()
        assert (got > 0).sum() == taken.nnz
        counts += got > 0
    degrees = (whole > 0).sum(1, keepdims=True)
    expected = np.where(whole > 0, np.minimum(1, 3 / degrees), 0)
    assert np.abs(counts / 300 - expected).max() < 0.15


def test_large_samples_are_everything(graph):
    operator = SparseTopology(graph.adjacency, CPU, torch.float64).normalized.matrix
    nodes, rng = np.array([5, 9, 30]), np.random.default_rng(0)
    way = chain(operator, nodes, (100, 100), rng)
    full = (operator @ operator).toarray()[nodes]
    np.testing.assert_allclose(way.product(0, 2).toarray(), full[:, way.support], atol=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_generous_samples_give_exact_gradients(graph, model):
    """Fan-outs beyond every degree: the sampled side is the exact one."""
    steps = [
        engine_step(GCondX(model=model, neighbors=n, fan_out=99, second_fan_out=99, **SMALL), graph)
        for n in ("all", "sampled")
    ]
    found = []
    for step in steps:
        begin(step, structural=False)
        found.append(step.loss_and_gradients(structural=False, train=False))
    torch.testing.assert_close(found[0][0], found[1][0], rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(found[0][1][0], found[1][1][0], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("neighbors", ["all", "sampled"])
def test_small_batches_are_drawn_by_the_seed(graph, model, neighbors):
    settings = {
        "nodes": 9,
        "hidden_channels": 4,
        "epochs": 2,
        "outer": 2,
        "inner": 1,
        "iterate": "last",
    }
    settings |= {"batch": 3, "fan_out": 2, "second_fan_out": 2}
    condenser = build("gcond-x", settings | {"model": model, "neighbors": neighbors})
    first, again = (condenser.condense(graph, device="cpu") for _ in range(2))
    assert torch.equal(first.x, again.x)
    other = condenser.condense(graph, seed=1, device="cpu")
    assert not torch.equal(first.x, other.x)
    assert first.provenance["neighbors"] == neighbors
    whole = build("gcond-x", settings | {"model": model, "batch": 50}).condense(graph, device="cpu")
    assert not torch.equal(first.x, whole.x)


@pytest.mark.parametrize("model", MODELS)
def test_classes_one_after_the_other_give_the_same(graph, model):
    condenser = GCondX(model=model, neighbors="sampled", **SMALL)
    found = []
    for rows in (10_000, 1):
        step = engine_step(condenser, graph)
        step.real.rows_at_once = rows
        begin(step, structural=False)
        found.append(step.real.gradients(step.learner, step.theta))
    for together, apart in zip(*found, strict=True):
        torch.testing.assert_close(together, apart, rtol=1e-12, atol=1e-12)


def test_batches_estimate_the_whole_class(graph):
    """The mean of many small batches' gradients is the gradient of the whole class."""
    whole, part = (engine_step(GCondX(batch=b, **SMALL), graph) for b in (50, 3))
    begin(whole, structural=False)
    expected = whole.real.gradients(whole.learner, whole.theta)[0]
    total = torch.zeros_like(expected)
    for epoch in range(200):
        part.real.begin(epoch)
        for _ in range(3):
            total += part.real.gradients(part.learner, whole.theta)[0] / 600
    assert (total - expected).norm() < 0.1 * expected.norm()


# -- structure and start -----------------------------------------------------------------------------


def test_small_entries_are_cut(graph):
    settings = {"nodes": 9, "epochs": 1, "outer": 1, "inner": 1, "iterate": "last"}
    all_of_it = GCond(threshold=0.0, **settings).condense(graph, device="cpu").adjacency
    middle = float(all_of_it[all_of_it > 0].median())
    cut = GCond(threshold=middle, **settings).condense(graph, device="cpu").adjacency
    assert torch.equal(cut, torch.where(all_of_it >= middle, all_of_it, 0))
    assert 0 < int((cut > 0).sum()) < int((all_of_it > 0).sum())
    assert torch.equal(cut, cut.T) and not cut.diagonal().any()


@pytest.mark.parametrize("method", [DCG, GCondX])
def test_methods_without_structure_return_the_identity(graph, method):
    small = method(nodes=9, epochs=1, outer=1, inner=1, iterate="last").condense(
        graph, device="cpu"
    )
    assert torch.equal(small.adjacency, torch.eye(9))


def test_released_start_is_misaligned():
    train_labels = torch.tensor([2, 0, 0, 1, 1, 2, 0])
    labels = torch.tensor([0, 0, 0, 1, 1, 2, 2])
    # Counts: 0 has three, 1 and 2 have two, and 2 came first: labels go 2, 2, 1, 1, 0, 0, 0 while rows
    # are sampled for 0, 0, 0, 1, 1, 2, 2.
    order = released_order(labels, train_labels)
    assert labels[order].tolist() == [1, 2, 2, 0, 1, 0, 0]
    assert sorted(order.tolist()) == list(range(7))


def test_released_start_only_by_name(graph):
    settings = {"nodes": 10, "epochs": 0, "iterate": "last"}
    # The class with the largest number comes first among the training labels.
    turned = replace(graph, y=2 - graph.y)
    aligned, released = (
        GCond(label_order=initial, **settings).condense(turned, device="cpu")
        for initial in ("aligned", "released")
    )
    assert not torch.equal(aligned.x, released.x)
    assert torch.equal(aligned.x.sort(0).values, released.x.sort(0).values)
    assert torch.equal(aligned.y, released.y)


@pytest.mark.parametrize(
    ("method", "settings", "sentence"),
    [
        ("dcg", {"model": "appnp"}, "model must be one of sgc, sgc2"),
        ("gcond-x", {"distance": "far"}, "distance must be one of"),
        ("gcond-x", {"outer": 0}, "outer must be .*, got 0"),
        ("gcond-x", {"inner": -1}, "inner must be .*, got -1"),
        ("gcond", {"threshold": 1.5}, "threshold must be .*, got 1.5"),
        ("gcond", {"label_order": "mixed"}, "label_order must be one of"),
        ("gcond", {"structure_lr": -1.0}, "structure_lr must be .*, got -1.0"),
        ("dcg", {"threshold": 0.1}, "threshold is not a setting of dcg"),
        ("gcond", {"neighbors": "few"}, "neighbors must be one of"),
        ("sgdd", {"structure_loss": "on"}, "structure_loss must be one of"),
        ("sgdd", {"samples": 0}, "samples must be .*, got 0"),
    ],
)
def test_bad_settings_are_refused(method, settings, sentence):
    with pytest.raises(InputError, match=sentence):
        build(method, {"nodes": 9, **settings})


def test_a_rate_that_diverges_is_explained(graph):
    with pytest.raises(InputError, match="feature_lr: the matching loss stopped being finite"):
        GCondX(
            nodes=9, feature_lr=1e38, units="absolute", epochs=3, iterate="last", model="gcn"
        ).condense(graph, device="cpu")


def test_matching_pays_on_a_noisy_graph():
    """A few epochs bring gradients closer, and X' is not the start any more."""
    small = SGDD(nodes=9, epochs=60, outer=4, inner=2, iterate="last").condense(
        planted_graph(noise=2.0), device="cpu"
    )
    values = small.provenance["matching_loss"]["values"]
    assert sum(values[-5:]) < 0.8 * sum(values[:5])
